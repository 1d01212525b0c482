"""Clients as people use them: each is told of the proxy by its environment alone."""
import json
import re
import textwrap

PYTHON = "/usr/bin/python3"

# Python programs that put the statuses of the answers from `urls` into `out`.
SCRIPTS = {
    "requests": """
        import concurrent.futures, requests
        with requests.Session() as s, concurrent.futures.ThreadPoolExecutor(8) as pool:
            out = list(pool.map(lambda u: s.get(u, timeout=60).status_code, urls))
    """,
    "requests, a connection each": """
        import requests
        out = [requests.get(u, timeout=60).status_code for u in urls]
    """,
    "httpx": """
        import concurrent.futures, httpx
        with httpx.Client(timeout=60) as c, concurrent.futures.ThreadPoolExecutor(8) as pool:
            out = list(pool.map(lambda u: c.get(u).status_code, urls))
    """,
    "httpx, async": """
        import asyncio, httpx
        async def main():
            async with httpx.AsyncClient(timeout=60) as c:
                return [r.status_code for r in await asyncio.gather(*(c.get(u) for u in urls))]
        out = asyncio.run(main())
    """,
    "aiohttp": """
        import aiohttp, asyncio
        async def one(s, u):
            async with s.get(u) as r:
                await r.read()
                return r.status
        async def main():
            async with aiohttp.ClientSession(trust_env=True) as s:
                return await asyncio.gather(*(one(s, u) for u in urls))
        out = asyncio.run(main())
    """,
    "urllib": """
        import urllib.request
        out = [urllib.request.urlopen(u, timeout=60).status for u in urls]
    """,
    "scrapy": """
        import scrapy, scrapy.crawler
        out = []
        class Spider(scrapy.Spider):
            name = "s"
            start_urls = urls
            custom_settings = dict(LOG_LEVEL="ERROR", RETRY_ENABLED=False, ROBOTSTXT_OBEY=False,
                                   CONCURRENT_REQUESTS_PER_DOMAIN=16, HTTPERROR_ALLOW_ALL=True,
                                   TELNETCONSOLE_ENABLED=False)
            def parse(self, response):
                out.append(response.status)
        process = scrapy.crawler.CrawlerProcess()
        process.crawl(Spider)
        process.start()
    """,
}

# Node from 22.21 and 24 on looks at the environment by itself; before, undici has to be told, of which
# Node's own fetch takes the dispatcher.
NODE = """
const [major, minor] = process.versions.node.split('.').map(Number)
if (!(major >= 24 || (major === 22 && minor >= 21))) {
    const undici = require('undici')
    undici.setGlobalDispatcher(new undici.ProxyAgent(process.env.HTTPS_PROXY))
}
Promise.all(urls.map(async url => {
    const answer = await fetch(url)
    await answer.text()
    return answer.status
})).then(out => console.log(JSON.stringify(out)))
"""


def python_command(script, urls):
    text = f"urls = {urls!r}\n" + textwrap.dedent(script) + "\nimport json\nprint(json.dumps(out))\n"
    return [PYTHON, "-c", text]


def curl_command(urls):
    return ["curl", "-sS", "--max-time", "60", "-w", "%{http_code}\\n", *(a for u in urls for a in ("-o", "/dev/null", u))]


def wget_command(urls):
    return ["wget", "-nv", "--server-response", "--tries=1", "-O", "/dev/null", *urls]


def node_command(urls):
    # Debian's Node finds Debian's modules by itself, one from elsewhere does not
    return ["env", "NODE_PATH=/usr/share/nodejs", "node", "-e", f"const urls = {json.dumps(urls)}\n{NODE}"]


def command(client, urls):
    """What is to be run for a client to fetch the URLs."""
    if client in SCRIPTS:
        return python_command(SCRIPTS[client], urls)
    return {"curl": curl_command, "wget": wget_command, "node": node_command}[client](urls)


def statuses(client, done):
    """The statuses that the client got, of the finished process."""
    assert done.returncode == 0, done.stderr
    if client == "wget":
        return [int(status) for status in re.findall(r"^  HTTP/1.1 (\d+)", done.stderr, re.M)]
    if client == "curl":
        return [int(line) for line in done.stdout.split()]
    return json.loads(done.stdout.splitlines()[-1])


ALL = [*SCRIPTS, "curl", "wget", "node"]
