// Sign-in with an OpenID Connect issuer, from the page to what the authorizer accepts.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { URL_ } from "./api.mjs";
import { check, close, LOOKS, open, prepare, shot, violations } from "./browser.mjs";
import { AUDIENCE, CLIENT, Issuer } from "./issuer.mjs";

// The tenant that the server gives to people (tests/console/__main__.py).
const { key: KEY, api } = await prepare("people");
const CALLBACK = `${URL_}/prod/console/signed-in`;

const port = Number(process.env.STINT_ISSUER_PORT);
const issuer = new Issuer(port, CALLBACK);

before(async () => {
  await issuer.start();
  await api.createAgent();
});

beforeEach(() => issuer.behave());

after(async () => {
  issuer.stop();
  await close();
});

// Open a page that knows the client. The server of the other tests has none, so that they sign in with keys.
async function openWith({ path = "/console/usage", keys = true, client = CLIENT, ...rest } = {}) {
  const opened = await open({ path: "/console", ...rest });
  await opened.page.context().route("**/console/config.json", async (route) => {
    const response = await route.fetch();
    const settings = await response.json();
    assert.equal(settings.issuer, issuer.url);
    assert.equal(settings.audience, AUDIENCE);
    await route.fulfill({
      response,
      json: { ...settings, client_id: client, keys },
    });
  });
  await opened.page.goto(`${URL_}/prod${path}`);
  const foreign = () => opened.problems.filter((problem) => !problem.startsWith(`request to ${issuer.url}/`));
  return { ...opened, foreign };
}

const button = (page) => page.getByRole("button", { name: `Sign in with 127.0.0.1:${port}` });

async function signIn(page) {
  await button(page).click();
  await page.getByText("What you have used").waitFor();
}

const kept = (page) => page.evaluate(() => ({ ...sessionStorage }));

test("a person signs in with a code and PKCE, and the API accepts the access token", async () => {
  const { page, requests, foreign, close: end } = await openWith();
  await signIn(page);

  assert.equal(page.url(), `${URL_}/prod/console/usage`);
  const { key, tokens } = await page.evaluate(() => ({
    key: sessionStorage.getItem("stint.key"),
    tokens: JSON.parse(sessionStorage.getItem("stint.tokens")),
  }));
  assert.equal(JSON.parse(Buffer.from(key.split(".")[1], "base64url")).aud, AUDIENCE);
  assert.equal(tokens.access_token, "");
  assert.equal((await kept(page))["stint.pending"], undefined);
  const answered = await page.evaluate(
    async (token) =>
      (
        await fetch("../v1/agents", {
          headers: { authorization: `Bearer ${token}` },
        })
      ).status,
    key,
  );
  assert.equal(answered, 200);
  const exchanged = issuer.requests.filter(({ path }) => path === "/token");
  assert.equal(exchanged.length, 1);
  assert.match(exchanged[0].form.get("code_verifier"), /^[\w-]{43}$/);
  for (const { headers } of issuer.requests) {
    if (headers["user-agent"]?.startsWith("Python")) continue;
    assert.equal(headers.authorization, undefined);
    assert.equal(headers.cookie, undefined);
  }
  const withToken = requests.filter((request) => request.headers().authorization);
  assert.ok(withToken.every((request) => new URL(request.url()).origin === URL_));
  assert.deepEqual(await page.evaluate(() => [localStorage.length, document.cookie]), [0, ""]);

  await page.reload();
  await page.getByText("What you have used").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await button(page).waitFor();
  assert.deepEqual(await kept(page), {});
  assert.ok(issuer.requests.some(({ path }) => path === "/logout"));
  assert.deepEqual(foreign(), []);
  await end();
});

for (const { size, viewport, scheme } of LOOKS) {
  test(`the page of sign-in has the issuer first, then keys, ${size}`, async () => {
    const { page, foreign, close: end } = await openWith({ viewport, scheme });
    await button(page).waitFor();
    await check(page, foreign(), `oidc-${size}`);
    await page.getByText("Use an API key").click();
    await page.getByLabel("API key").fill(KEY);
    await page.keyboard.press("Enter");
    await page.getByText("Tenant people").waitFor();
    assert.deepEqual(foreign(), []);
    await end();
  });
}

test("without keys, there is only the issuer", async () => {
  const { page, close: end } = await openWith({ keys: false });
  await button(page).waitFor();
  assert.equal(await page.getByText("Use an API key").count(), 0);
  await end();
});

for (const [name, faults, words] of [
  ["another state", { state: "another" }, "This sign-in was not begun in this tab"],
  ["another nonce", { nonce: "another" }, "The ID token does not belong to this sign-in."],
  ["refused consent", { refuses: "access_denied" }, "You did not allow the sign-in"],
  ["an error of the issuer", { refuses: "invalid_scope" }, "The issuer refused the sign-in: invalid_scope"],
  ["an ID token for another client", { idAudience: "other" }, "The ID token is for another client."],
  ["an expired ID token", { idSeconds: -120 }, "The ID token has expired."],
  ["another audience", { audience: "billing" }, `has the audience billing, and this server accepts ${AUDIENCE}`],
]) {
  test(`${name} signs nobody in, and says why`, async () => {
    const { page, foreign, close: end } = await openWith();
    issuer.behave(faults);
    await button(page).click();
    await page.getByRole("alert").getByText(words).waitFor();

    assert.deepEqual(await kept(page), {});
    assert.equal(page.url().includes("code="), false);
    assert.deepEqual(await violations(page), []);
    if (name === "refused consent") await shot(page, "oidc-refused");
    issuer.behave();
    await button(page).click();
    await page
      .getByText(/Make an agent, talk to it|What you have used/)
      .first()
      .waitFor();
    assert.deepEqual(foreign(), []);
    await end();
  });
}

test("a link with somebody's code asks for no token", async () => {
  const { page, close: end } = await openWith({
    path: "/console/signed-in?code=stolen&state=guessed",
  });
  await page.getByRole("alert").getByText("was not begun in this tab").waitFor();
  assert.equal(
    issuer.requests.some(({ path }) => path === "/token"),
    false,
  );
  await end();
});

test("an issuer that does not answer is named", async () => {
  const { page, close: end } = await openWith();
  await page.route(`${issuer.url}/**`, (route) => route.abort());
  await button(page).click();
  await page.getByText(`127.0.0.1:${port} does not answer`).waitFor();
  await end();
});

test("the ID token is sent if it is the one with the audience of this server", async () => {
  const { page, close: end } = await openWith({ client: AUDIENCE });
  issuer.behave({
    client: AUDIENCE,
    audience: undefined,
    idAudience: AUDIENCE,
  });
  await signIn(page);
  await end();
});

test("a token that is about to expire is renewed before the next request", async () => {
  const { page, close: end } = await openWith();
  issuer.behave({ seconds: 20, refreshes: true });
  await signIn(page);
  await page.getByText("30 days").click();
  await page.waitForFunction(() => {
    const { expires_at } = JSON.parse(sessionStorage.getItem("stint.tokens"));
    return expires_at - Date.now() > 60_000;
  });

  const renewed = issuer.requests.filter(({ form }) => form.get("grant_type") === "refresh_token");
  assert.equal(renewed.length, 1);
  await end();
});

async function typeAndExpire(page) {
  await button(page).click();
  await page.getByLabel("Message").fill("Do not lose this");
  const refuse = (route) =>
    route.fulfill({
      status: 401,
      json: { error: { message: "Expired.", code: "unauthorized" } },
    });
  await page.route("**/v1/agents/**", refuse);
  await page.getByRole("button", { name: "Send" }).click();
  const dialog = page.getByRole("dialog", { name: "Sign in again" });
  await dialog.waitFor();
  await page.unroute("**/v1/agents/**");
  return dialog;
}

test("after a token has expired, a window signs in again, and what was typed is kept", async () => {
  const { page, close: end } = await openWith({ path: "/console" });
  const dialog = await typeAndExpire(page);
  assert.deepEqual(await violations(page), []);
  await shot(page, "oidc-again");
  const before = await kept(page);
  await dialog.getByRole("button", { name: /^Sign in with/ }).click();
  await dialog.waitFor({ state: "hidden" });

  assert.notEqual((await kept(page))["stint.key"], before["stint.key"]);
  assert.equal(await page.getByLabel("Message").inputValue(), "Do not lose this");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(/You said: Do not lose this/).waitFor();
  await end();
});

test("somebody else cannot go on with the page of a person", async () => {
  const { page, close: end } = await openWith({ path: "/console" });
  const dialog = await typeAndExpire(page);
  issuer.behave({ sub: "bob" });
  await dialog.getByRole("button", { name: /^Sign in with/ }).click();
  await page.getByText("The ID token is of somebody else.").waitFor();
  await end();
});
