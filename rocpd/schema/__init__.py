"""The contract: tables, views, their text and their rendering for one or many ranks."""
