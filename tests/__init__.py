"""Tests of majorant, in folders that mirror the source."""
