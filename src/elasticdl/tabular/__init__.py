"""Tables as a model sees them: which columns there are, and how each becomes numbers."""
