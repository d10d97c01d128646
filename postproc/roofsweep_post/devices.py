"""Names devices by their row of dimension `device`, and explains these names at the end of a table."""

from .frames import places
from .texts import listed


def driver_word(data, places):
    """Returns the word before driver versions: "Linux" for CPUs, else "driver"."""
    return "Linux" if set(data["device_kind"].values[places]) == {"cpu"} else "driver"


class Devices:
    def __init__(self, data):
        self.data, self.places, self.named = data, places(data), set()

    def text(self, place, name):
        return self.data[f"device_{name}"].values[place]

    def name(self, place):
        self.named.add(place)
        return f"#{place} {self.text(place, 'hostname')}"

    def names(self, found):
        return listed(self.name(place) for place in sorted(set(found)))

    def print_named(self):
        if self.named:
            print("Devices named above")
        for place in sorted(self.named):
            bus = self.text(place, "pci_id")
            print(f"  {self.name(place)}: {self.text(place, 'uuid')}{', PCI ' * bool(bus)}{bus}")
