"""Packages that are imported under the name of another one, and what such a package lacks."""
