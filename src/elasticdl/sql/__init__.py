"""SQL that trains and predicts: a statement is read, typed, and becomes the same job as every other way in."""
