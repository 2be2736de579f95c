"""Paths, and a helper, for the file beside this folder."""

ITEMS = "/items"


def show(client, number):
    return client.get(f"{ITEMS}/{number}", name=ITEMS)
