"""Answers for programs that ask: documents with units, certainty and the command that shows the same again."""
