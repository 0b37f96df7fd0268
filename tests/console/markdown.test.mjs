// What models, tools and documents write is shown as text, and loads nothing.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, ensureAgent, open } from "./browser.mjs";

after(close);

// The answer of the scripted model repeats the message.
const MESSAGES = {
  "a remote image is a link": {
    text: "![cat](https://elsewhere.example/cat.png)",
    check: async (answer) => {
      assert.equal(await answer.locator("img").count(), 0);
      const link = answer.getByRole("link", { name: "cat" });
      assert.equal(await link.getAttribute("href"), "https://elsewhere.example/cat.png");
      assert.equal(await link.getAttribute("rel"), "noopener noreferrer");
    },
  },
  "a link to a script leads nowhere": {
    text: "[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](data:text/html,x) [d](/v1/agents) <javascript:alert(2)>",
    check: async (answer) => assert.equal(await answer.locator("a[href]").count(), 0),
  },
  "markup is text": {
    text: "<svg onload=alert(1)><script>alert(2)</script><iframe src=//x.example></iframe> <form><input name=key></form>",
    check: async (answer) => {
      assert.equal(await answer.locator("svg, script, iframe, form, input").count(), 0);
      assert.match(await answer.innerText(), /<script>alert\(2\)<\/script>/);
    },
  },
  "text is formatted": {
    text: "# Title\n\n- one\n- **two**\n\n```\ncode <b>\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |",
    check: async (answer) => {
      assert.equal(await answer.locator("li").count(), 2);
      assert.match(await answer.locator("pre").innerText(), /code <b>/);
      assert.equal(await answer.locator("td").count(), 2);
    },
  },
};

for (const [name, { text, check }] of Object.entries(MESSAGES)) {
  test(name, async () => {
    await ensureAgent();
    const { page, problems, close: end } = await open();
    await page.getByLabel("Message").fill(text, { timeout: 20_000 });
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText(/\d+ tokens/).waitFor({ timeout: 20_000 });

    await check(page.locator(".message-of-agent"));
    assert.deepEqual(problems, []);
    await end();
  });
}
