"""A store with calls that never return, as on a network file system whose server is down."""

from __future__ import annotations

import time

from dict_storage import DictStorage

from scrapy_rep.deferreds import OwnThread


class HangingStorage(DictStorage):
    """`hanging:put,close` names the methods that never return."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        thread = OwnThread()

        async def hang(*_: object) -> None:
            await thread.run(time.sleep, 3_600)

        for name in address.partition(":")[2].split(","):
            setattr(self, name, hang)
