"""What the documents say of the program, held against the program."""
