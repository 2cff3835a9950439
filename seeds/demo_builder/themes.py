"""The words that the stories are made of. Nothing here is taken from a real video."""

from __future__ import annotations

import msgspec

__all__ = [
    "BIG_THINGS",
    "COLOURS",
    "DAYS",
    "GARMENTS",
    "GREETINGS",
    "HOUSE_ACTIONS",
    "LETTERS",
    "MATERIALS",
    "NAMES",
    "NICKNAMES",
    "NOTICES",
    "PATTERNS",
    "PLAIN_ACTIONS",
    "SMALL_THINGS",
    "THEMES",
    "VENUE_WORDS",
    "Theme",
]


class Theme(msgspec.Struct, frozen=True, kw_only=True):
    """A sub-category: where its stories play and what stands around there.

    items: plural nouns that are counted. carried: what is taken from hand to hand.
    painted: what gets a new coat. deadlines: clauses that can follow "until".
    """

    sub_category: str
    domain: str
    venue: str
    places: tuple[str, ...]
    items: tuple[str, ...]
    carried: tuple[str, ...]
    painted: tuple[str, ...]
    occasions: tuple[str, ...]
    jobs: tuple[str, ...]
    deadlines: tuple[str, ...]


THEMES = (
    Theme(
        sub_category="Harbour Life",
        domain="Travel",
        venue="Quay",
        places=("the boat shed", "the slipway", "the net loft", "the pier"),
        items=("buoys", "oars", "crates", "eel baskets", "signal flags"),
        carried=("brass lantern", "coil of rope", "sea chart", "tar bucket", "boat hook"),
        painted=("rowing boat", "harbour gate", "mooring post", "hull of the ferry"),
        occasions=("regatta", "herring supper", "boat blessing", "harbour fair"),
        jobs=("MEND NETS", "BOIL TAR", "OIL WINCH", "STACK FENDERS", "SWEEP DECK", "DRY SAILS"),
        deadlines=("the ferry leaves", "the tide turns", "the bridge opens"),
    ),
    Theme(
        sub_category="Market Day",
        domain="Daily Life",
        venue="Market",
        places=("the covered hall", "the cheese stall", "the fountain square", "the store room"),
        items=("melons", "cheese wheels", "honey jars", "cabbages", "flower pots"),
        carried=("cash box", "bread basket", "egg tray", "roll of awning cloth", "hand scale"),
        painted=("market stall", "price board", "hand cart", "shutter of the kiosk"),
        occasions=("autumn market", "plum fair", "night bazaar", "honey contest"),
        jobs=(
            "WASH TABLES",
            "CHECK SCALES",
            "SORT APPLES",
            "RAISE AWNING",
            "COUNT COINS",
            "FILL TROUGH",
        ),
        deadlines=("the stalls open", "the bread van comes", "the auction starts"),
    ),
    Theme(
        sub_category="Wood and Repair",
        domain="Craft",
        venue="Workshop",
        places=("the saw room", "the lathe corner", "the timber yard", "the glue bench"),
        items=("stools", "planks", "drawers", "wooden spoons", "picture frames"),
        carried=("hand plane", "glue pot", "folding rule", "violin case", "carving mallet"),
        painted=("rocking chair", "garden bench", "dolls' house", "cupboard door"),
        occasions=("open workshop", "toy exhibition", "guild visit", "apprentice day"),
        jobs=("SHARPEN SAWS", "HEAT GLUE", "SAND LEGS", "CUT DOWELS", "WAX TOPS", "SORT SCREWS"),
        deadlines=("the glue sets", "the customer calls", "the lorry arrives"),
    ),
    Theme(
        sub_category="Village Kitchen",
        domain="Food",
        venue="Kitchen",
        places=("the bakery", "the larder", "the long table", "the herb yard"),
        items=("loaves", "soup bowls", "jam jars", "pancakes", "pepper mills"),
        carried=("rolling pin", "recipe book", "soup ladle", "salt box", "cake tin"),
        painted=("oven door", "dresser", "kitchen stool", "menu board"),
        occasions=("harvest dinner", "soup contest", "wedding breakfast", "dumpling night"),
        jobs=("PEEL ROOTS", "KNEAD DOUGH", "RINSE BEANS", "LAY TABLE", "WHIP CREAM", "LIGHT OVEN"),
        deadlines=("the oven is hot", "the guests arrive", "the dough goes in"),
    ),
    Theme(
        sub_category="Hillside Garden",
        domain="Nature",
        venue="Garden",
        places=("the greenhouse", "the orchard", "the potting shed", "the pond"),
        items=("seed trays", "pumpkins", "beehives", "tulip bulbs", "bean poles"),
        carried=("pruning saw", "garden hose", "seed box", "rake", "apple picker"),
        painted=("garden gate", "bird house", "water tank", "picket fence"),
        occasions=("seed swap", "apple day", "rose show", "beekeepers' meeting"),
        jobs=("TURN COMPOST", "TIE VINES", "WATER BEDS", "PICK PEARS", "CLEAN HIVES", "SOW KALE"),
        deadlines=("the rain starts", "the school class arrives", "the pump is switched off"),
    ),
    Theme(
        sub_category="Lantern Festival",
        domain="Culture",
        venue="Theatre",
        places=("the stage", "the costume room", "the courtyard", "the ticket hall"),
        items=("paper lanterns", "masks", "drums", "programmes", "folding chairs"),
        carried=("megaphone", "prompt book", "feather fan", "cymbal", "bamboo flute"),
        painted=("dragon head", "stage door", "puppet booth", "cardboard moon"),
        occasions=("lantern parade", "shadow play", "drum night", "costume ball"),
        jobs=("HANG LAMPS", "SEW HEMS", "TUNE LUTES", "FOLD PAPER", "TEST ROPES", "PRINT TICKETS"),
        deadlines=("the curtain rises", "the parade sets off", "the doors open"),
    ),
)

VENUE_WORDS = (
    "Kestrel", "Heron", "Marigold", "Löwen", "Saltwind", "Étoile", "Thistle", "Cloverleaf",
    "Bramble", "Søndre", "Juniper", "Lindgren", "Walnut", "Foxglove", "Mistral", "Pelican",
    "Tamarind", "Ålund", "Corvina", "Rosmarin",
)  # fmt: skip

NAMES = (
    "Mira", "Björn", "Zoë", "Tomasz", "Anaïs", "Kwame", "Łucja", "Søren", "Priya", "Mateo",
    "Ngọc", "Fergus", "Ilse", "Omar", "Chiara", "Tadeusz", "Hanna", "José", "Aylin", "Ravi",
    "Noor", "Emeka", "Signe", "Pavel",
)  # fmt: skip

COLOURS = ("red", "green", "blue", "yellow", "white", "black", "grey", "orange", "violet", "brown")
GARMENTS = ("scarf", "jacket", "apron", "cap", "waistcoat", "jumper")
PATTERNS = ("striped", "dotted", "checked", "flowered", "zigzag", "plain")
MATERIALS = ("brass", "copper", "leather", "slate", "horn", "wood", "tin", "bone")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
LETTERS = ("A", "B", "C", "D", "K", "M", "R", "X")

SMALL_THINGS = (
    "copper kettle", "birdcage", "typewriter", "accordion", "umbrella", "chessboard", "teddy bear",
    "magnifying glass", "sewing machine", "alarm clock", "straw hat", "tennis racket", "globe",
    "candlestick", "hourglass", "pocket radio", "telescope", "biscuit barrel", "music box",
    "fly swatter", "tambourine", "letter opener", "toy train", "snow shovel", "wicker suitcase",
    "flat iron", "coffee grinder", "abacus", "roller skate", "harmonica",
)  # fmt: skip
BIG_THINGS = (
    "hat stand", "grandfather clock", "dress form", "wheelbarrow", "stepladder", "spinning wheel",
    "rain barrel", "milk churn", "folding screen", "tall mirror", "iron stove", "writing desk",
)  # fmt: skip

NICKNAMES = ("old duchess", "grumbler", "admiral", "sleepy goose", "professor", "little mayor")
GREETINGS = (
    ("shake hands", "They shake hands."),
    ("hug each other", "They hug each other."),
    ("bow to each other", "They bow to each other."),
    ("bump elbows", "They bump elbows."),
    ("salute with two fingers", "They salute with two fingers."),
)

PLAIN_ACTIONS = (
    ("wraps the {thing} in a cloth", "Wraps it in a cloth."),
    ("hangs the {thing} on a hook", "Hangs it on a hook."),
    ("polishes the {thing} with a sleeve", "Polishes it with a sleeve."),
    ("ties a ribbon round the {thing}", "Ties a ribbon round it."),
    ("holds the {thing} up against the light", "Holds it up against the light."),
    ("hides the {thing} under a sack", "Hides it under a sack."),
    ("draws the {thing} in a notebook", "Draws it in a notebook."),
    ("sticks a label on the {thing}", "Sticks a label on it."),
)

#: The archive's own words: how the tree says it, and what it means in plain words.
HOUSE_ACTIONS = {
    "velk": ("velks the {thing}", "Carries it about and lays it down nowhere."),
    "orm": ("orms the {thing} to {other}", "Passes it over and claims it back at once."),
    "tessle": ("tessles the {thing}", "Knocks it thrice against a beam or a board."),
}

NOTICES = (
    ("NO FIRES", "AFTER SUNSET"),
    ("RING TWICE", "FOR THE CARETAKER"),
    ("NO BICYCLES", "BEYOND THIS LINE"),
    ("PLEASE KNOCK", "BEFORE ENTERING"),
    ("DOGS WELCOME", "ON A SHORT LEAD"),
    ("CLOSED TODAY", "BECAUSE OF FROST"),
    ("MIND YOUR HEAD", "AT THE LOW DOOR"),
    ("QUIET PLEASE", "DURING REHEARSAL"),
)
