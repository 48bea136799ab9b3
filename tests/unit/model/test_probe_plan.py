"""Probes stay light on slow links, and a train is long enough to fill its queue and to measure the rate."""

from __future__ import annotations

import pytest

from tunnelmark.model.probe_plan import HEADERS, SIZE, pace_of, patience, train_of
from tunnelmark.plan.impairments import Direction, Jitter
from tunnelmark.plan.model import Profile
from tunnelmark.plan.order import link_seed
from tunnelmark.units import Duration, Rate, Size


def test_probes_keep_their_pace_where_there_is_room():
    assert pace_of(Profile("p", "T", "S"), 500, 0.001).interval == 0.001


def test_probes_take_little_of_the_slower_direction():
    slow = Profile("p", "T", "S", Direction(rate=Rate(10**8)), Direction(rate=Rate(10**5)))
    pace = pace_of(slow, 500, 0.001)
    assert 8 * (SIZE + HEADERS) / pace.interval == pytest.approx(0.05 * 1e5)


@pytest.mark.parametrize(("rate", "queue"), [(10**6, 10_000), (10**7, 131_072), (10**9, 524_288), (3 * 10**9, 1 << 20)])
def test_a_train_fills_the_queue_and_then_measures(rate, queue):
    train = train_of(Direction(rate=Rate(rate), queue=Size(queue)))
    assert train is not None
    frame = train.size + HEADERS
    sent, span = train.count * frame, train.count * train.interval
    assert 8 * frame / train.interval > 1.15 * rate
    overflow = sent - queue - rate / 8 * span
    assert overflow > -2 * frame
    assert rate / 8 * span > 100 * frame


def test_a_train_is_longer_where_the_jitter_moves_its_ends():
    calm = Direction(rate=Rate(10**8), queue=Size(65536))
    shaky = Direction(rate=Rate(10**8), queue=Size(65536), delay=Duration(0.02), jitter=Jitter(Duration(0.004)))
    one, other = train_of(calm), train_of(shaky)
    assert one is not None
    assert other is not None
    assert other.count > one.count


@pytest.mark.parametrize("rate", [10**6, 10**8, 10**9, 3 * 10**9])
def test_a_train_waits_for_no_sender_that_is_slower_than_the_rate(rate):
    way = Direction(rate=Rate(rate), queue=Size(131_072))
    train = train_of(way)
    assert train is not None
    planned, bits = train.count * train.interval, 8 * train.count * (train.size + HEADERS)
    assert patience(train, way) > planned
    assert patience(train, way) < max(bits / rate, planned) + 0.1


def test_without_a_rate_there_is_no_train():
    assert train_of(Direction(delay=Duration(0.01))) is None


def test_a_link_s_seed_is_that_of_older_versions_and_another_one_in_each_block():
    """A run is repeated by its seed, so the numbers must not change."""
    assert (link_seed(7, 1), link_seed(1, 1)) == (199776456940392, 113823860709916)
    assert len({link_seed(seed, block) for seed in range(10) for block in range(10)}) == 100
