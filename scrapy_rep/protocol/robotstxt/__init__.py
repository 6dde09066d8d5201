"""The text of one robots.txt: parsing and matching."""
