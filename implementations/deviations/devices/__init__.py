"""What device packages are known not to keep, in a module for each package: it is listed where the package is used."""
