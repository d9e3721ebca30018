"""Recipes: settings as data files, one a purpose."""
