// What models, tools and documents write is shown as text, and loads nothing.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, prepare } from "./browser.mjs";
import { answersOf, createSession, send } from "./session.mjs";

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

test("what a model writes", async (context) => {
  const { api, open } = await prepare("markdown");
  const { page, problems, close: end } = await open({ path: await createSession(api) });
  for (const [name, { text, check }] of Object.entries(MESSAGES)) {
    await context.test(name, async () => {
      await send(page, text);
      await answersOf(page)
        .last()
        .getByText(/\d+ tokens/)
        .waitFor();
      await check(answersOf(page).last().locator(".markdown"));
      assert.deepEqual(problems, []);
    });
  }
  await end();
});
