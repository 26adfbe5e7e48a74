"""What `fairway bench dashboards` asks for is what there is: each page's data, as an operator."""

from __future__ import annotations

import httpx2
from tests.api.house import House
from tests.api.insight.test_insight import until_seen
from tests.api.jobs.test_jobs import submit

from fairway.bench.insight.dashboards import OWN_PAGES, PAGES, View


async def test_the_data_of_every_page_is_told(house: House, operator: httpx2.AsyncClient) -> None:
    await until_seen(house)
    name, key = house.new_tenant()
    async with house.caller(key) as tenant:
        names = {"tenant": name, "job": (await submit(tenant)).rsplit("/")[-1]}
    own = {"fairway-tenant": name}
    for pages, headers in ((PAGES, {}), (OWN_PAGES, own)):
        for path in pages.values():
            reply = await operator.get(path.format(**names), headers=headers)
            assert reply.status_code == 200, (path, reply.text)
    jobs = {names["tenant"]: names["job"]}
    asked = View(house.url, house.operator_key, jobs, dashboards=1, seconds=1).requests()
    assert {page for page, _ in asked} == PAGES.keys() | OWN_PAGES.keys()
