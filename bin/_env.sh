# Makes the environment that a command needs, once, then leaves it alone. Sourced.
#
#   need run     what bin/train needs
#   need test    what bin/test needs, which holds the former
#   need video   what bin/trm tree needs beside the first
#   need tensorboard   what bin/trm tensorboard needs beside the first
#
# Versions and hashes are those of requirements/*.txt. uv is used if it is there, else
# venv + pip. All messages go to stderr: stdout belongs to the command.

# uv trusts a list of its own; a company's or a sandbox's certificate is in the system's.
export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-true}" UV_NATIVE_TLS="${UV_NATIVE_TLS:-true}"

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
VENV="${TRM_VENV:-$ROOT/.venv}"
PYTHON="$VENV/bin/python"

say() { printf '%s\n' "$*" >&2; }

find_python() {
    local candidate
    for candidate in ${TRM_PYTHON:-} python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s' "$candidate"
            return 0
        fi
    done
    say "Python 3.11 or newer is needed and was not found."
    say "Install it, or name it: TRM_PYTHON=/path/to/python3 $0"
    return 1
}

install() {
    local wanted="$ROOT/requirements/$1.txt" python
    if [ ! -x "$PYTHON" ]; then
        python="$(find_python)"
        say "Making the environment in $VENV ..."
        if command -v uv >/dev/null 2>&1; then
            uv venv --quiet --python "$python" "$VENV" >&2
        elif ! "$python" -m venv "$VENV" >&2; then
            rm -rf "$VENV"
            say "This Python cannot make environments. On Debian: apt-get install python3-venv"
            return 1
        fi
    fi
    say "Installing the locked packages ($1) ..."
    if command -v uv >/dev/null 2>&1; then
        uv pip install --quiet --python "$PYTHON" --require-hashes -r "$wanted" >&2
    else
        "$PYTHON" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$wanted" >&2
    fi
}

# The stamp holds the lock file's checksum, so that a changed lock file installs again.
# A lock keeps two first starts from building one environment at the same time.
need() {
    local sum stamp
    sum="$(cksum <"$ROOT/requirements/$1.txt")"
    stamp="$VENV/.installed-$1"
    if [ "$(cat "$stamp" 2>/dev/null)" != "$sum" ]; then
        (
            flock 9
            if [ "$(cat "$stamp" 2>/dev/null)" != "$sum" ]; then
                install "$1" && printf '%s' "$sum" >"$stamp"
            fi
        ) 9>"$VENV.lock"
    fi
    export PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}"
}
