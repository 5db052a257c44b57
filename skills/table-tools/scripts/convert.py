#!/usr/bin/env python3
"""Convert a table from CSV to Markdown, JSON or CSV."""

import argparse
import csv
import json
import sys

DELIMITERS = {"comma": ",", "tab": "\t", "semicolon": ";"}


class BadTable(Exception):
    """What was asked can't be done with this table."""


def read_table(stream, delimiter):
    """Return the column names and the rows, each row as long as the header."""
    rows = list(csv.reader(stream, delimiter=delimiter))
    if not rows or not rows[0]:
        raise BadTable("the table is empty")
    header = rows[0]
    for number, row in enumerate(rows[1:], start=2):
        if row and len(row) != len(header):
            raise BadTable("row {} has {} cells, the header has {}".format(number, len(row), len(header)))
    return header, [row for row in rows[1:] if row]


def position(header, column):
    if column not in header:
        raise BadTable("no column {!r}; there are {}".format(column, ", ".join(header)))
    return header.index(column)


def keep(header, rows, conditions):
    for condition in conditions:
        column, equals, value = condition.partition("=")
        if not equals:
            raise BadTable("--where needs column=value, not {!r}".format(condition))
        place = position(header, column)
        rows = [row for row in rows if row[place] == value]
    return rows


def number(text):
    try:
        return float(text)
    except ValueError:
        raise BadTable("{!r} is not a number, so --numeric can't sort by it".format(text)) from None


def arrange(header, rows, options):
    rows = keep(header, rows, options.where)
    if options.sort:
        place = position(header, options.sort)
        order = number if options.numeric else str
        rows = sorted(rows, key=lambda row: order(row[place]), reverse=options.descending)
    if options.limit is not None:
        rows = rows[: options.limit]
    if options.columns:
        places = [position(header, column) for column in options.columns.split(",")]
        header = [header[place] for place in places]
        rows = [[row[place] for place in places] for row in rows]
    return header, rows


def markdown(header, rows):
    def cells(row):
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", "<br>") for cell in row) + " |\n"

    return cells(header) + cells(["---"] * len(header)) + "".join(cells(row) for row in rows)


def as_json(header, rows):
    return json.dumps([dict(zip(header, row)) for row in rows], indent=2, ensure_ascii=False) + "\n"


def write(header, rows, form):
    if form == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows([header] + rows)
    else:
        sys.stdout.write(markdown(header, rows) if form == "markdown" else as_json(header, rows))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", nargs="?", default="-", metavar="TABLE", help="a CSV file, - for standard input")
    parser.add_argument("--to", choices=["markdown", "json", "csv"], default="markdown", help="the form to print")
    parser.add_argument("--delimiter", choices=sorted(DELIMITERS), default="comma", help="between the cells read")
    parser.add_argument("--columns", metavar="A,B", help="only these columns, in this order")
    parser.add_argument("--where", action="append", default=[], metavar="COLUMN=VALUE", help="only such rows")
    parser.add_argument("--sort", metavar="COLUMN", help="sort the rows by this column")
    parser.add_argument("--numeric", action="store_true", help="sort as numbers")
    parser.add_argument("--descending", action="store_true", help="largest first")
    parser.add_argument("--limit", type=int, metavar="N", help="no more than N rows")
    return parser.parse_args()


def main():
    options = parse_arguments()
    delimiter = DELIMITERS[options.delimiter]
    try:
        if options.table == "-":
            table = read_table(sys.stdin, delimiter)
        else:
            with open(options.table, encoding="utf-8-sig", newline="") as stream:
                table = read_table(stream, delimiter)
        write(*arrange(*table, options), form=options.to)
    except (BadTable, OSError, UnicodeDecodeError, csv.Error) as reason:
        print("convert.py: {}".format(reason), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
