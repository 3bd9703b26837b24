"""Links of the site lead somewhere, and its pages need nothing from elsewhere."""

from support.crawl import crawled


def test_every_page_is_reached_from_the_first_one(site):
    pages = {page for page in site.rglob("*.html") if "_static" not in page.parts}
    assert sorted(pages - crawled(site).keys()) == []


def test_every_link_leads_to_a_file(site):
    links = [(page, link) for page, read in crawled(site).items() for link in read.targets]
    assert links
    assert [(page.name, str(link)) for page, (link, _) in links if not link.is_file()] == []


def test_every_link_into_a_page_leads_to_a_place_in_it(site):
    pages = crawled(site)
    links = [(page, link) for page, read in pages.items() for link in read.targets]
    places = [(page, path, place) for page, (path, place) in links if place and path in pages]
    assert places
    assert [
        f"{page.name}: {path.name}#{place}"
        for page, path, place in places
        if place not in pages[path].places
    ] == []


def test_pages_load_nothing_from_elsewhere(site):
    assert {url for read in crawled(site).values() for url in read.loaded_from_elsewhere} == set()
