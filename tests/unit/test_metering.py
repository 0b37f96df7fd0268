from tests.clock import CLOCK

from stint.metering import Meter


def test_a_meter_measures_with_the_clock_of_the_process_at_its_beginning() -> None:
    CLOCK.move(60)

    with CLOCK.stop():
        meter = Meter()
        CLOCK.move(2)

        assert meter.read().milliseconds == 2000
