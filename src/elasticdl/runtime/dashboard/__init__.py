"""The dashboard: runs looked at in a browser, in a terminal, and by other programs. It only reads."""
