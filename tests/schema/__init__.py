"""Tests of the contract: tables, views, their text and their rendering."""
