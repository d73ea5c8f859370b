"""What a restoration left never passes for the history once half of it is freed."""

from __future__ import annotations

from contextlib import suppress

from sessrotate.errors import SessrotateError
from support.crash.deeds import DEEDS, HISTORY, after_kills, after_power_losses, made, told
from support.crash.scenes import laid_out


def test_where_a_program_writes_the_short_file_back_while_the_archive_is_freed_that_is_said() -> (
    None
):
    (deed,) = (deed for deed in DEEDS if deed.name == "free what was restored")
    with laid_out(made()) as found:
        short = found.where.live.read_bytes()
    whole = 0
    for image in {*after_kills(deed), *after_power_losses(deed)}:
        with laid_out(image) as found:
            found.where.live.write_bytes(short)
            with suppress(SessrotateError):
                assert told(found)[0] == HISTORY
                whole += 1
    assert whole
