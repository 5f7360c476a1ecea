"""Translations of an IOMMU by device, with the faults: text from bytes, and signed numbers by hand."""

import sys

import simpletrace


class Iommu(simpletrace.Analyzer2):
    devices = {}
    faults = 0

    def iommu_translate(self, device, iova, pa, ret, *, event, event_id, timestamp_ns, pid):
        assert event.name == event_id and event.args.names() == ["device", "iova", "pa", "ret"]
        device = device.decode("utf-8", "replace")
        count, pages = self.devices.setdefault(device, [0, set()])
        self.devices[device][0] += 1
        pages.add(iova >> 12)
        if ret >> 63:
            self.faults += 1
            if self.faults <= 3:
                print(f"{timestamp_ns} pid {pid}: {device} {iova:#x}: error {ret - 2 ** 64}")

    def catchall(self, *args, event, **keywords):
        if event.name == "Dropped_Event":
            print("missing:", *args)


analyzer = Iommu()
simpletrace.process(sys.argv[1], sys.argv[2], analyzer)
for device, (count, pages) in sorted(analyzer.devices.items()):
    print(f"{device:<12} {count:>6} translations, {len(pages)} pages")
print(analyzer.faults, "faults")
