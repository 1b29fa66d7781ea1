"""Question answering over a user's own data: read and checked, written as a folder, and the family that asks it."""
