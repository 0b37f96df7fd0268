// An OpenID Connect issuer on loopback: discovery, authorization with PKCE, tokens, and the end of a session.
import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { createServer } from "node:http";

export const CLIENT = "console-test";
export const AUDIENCE = "stint-test";

const KEYS = generateKeyPairSync("rsa", { modulusLength: 2048 });
const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

export class Issuer {
  constructor(port, redirectUri) {
    this.url = `http://127.0.0.1:${port}`;
    this.port = port;
    this.redirectUri = redirectUri;
    this.codes = new Map();
    this.behave();
  }

  // Set what the issuer does wrong; by default nothing.
  behave(faults = {}) {
    this.faults = {
      client: CLIENT,
      seconds: 3600,
      audience: AUDIENCE,
      sub: "ann",
      ...faults,
    };
    this.requests = [];
    this.refreshToken = "";
  }

  async start() {
    this.server = createServer((request, response) => {
      this.answer(request, response).catch((error) => {
        response.writeHead(500).end(String(error));
      });
    });
    await new Promise((resolve) => this.server.listen(this.port, "127.0.0.1", resolve));
    this.server.unref();
  }

  stop() {
    this.server?.closeAllConnections();
    this.server?.close();
  }

  async answer(request, response) {
    let body = "";
    for await (const part of request) body += part;
    const url = new URL(request.url, this.url);
    const form = new URLSearchParams(body);
    this.requests.push({ path: url.pathname, form, headers: request.headers });
    const json = (document, status = 200) =>
      response
        .writeHead(status, {
          "content-type": "application/json",
          "access-control-allow-origin": "*",
        })
        .end(JSON.stringify(document));
    const leave = (address, fields) => {
      const location = new URL(address);
      for (const [name, value] of Object.entries(fields)) location.searchParams.set(name, value);
      response.writeHead(302, { location: location.href }).end();
    };
    switch (url.pathname) {
      case "/.well-known/openid-configuration":
        return json({
          issuer: this.url,
          jwks_uri: `${this.url}/keys`,
          authorization_endpoint: `${this.url}/authorize`,
          token_endpoint: `${this.url}/token`,
          end_session_endpoint: `${this.url}/logout`,
        });
      case "/keys":
        return json({
          keys: [{ ...KEYS.publicKey.export({ format: "jwk" }), kid: "k1" }],
        });
      case "/authorize":
        return this.authorize(url.searchParams, response, leave);
      case "/token":
        return this.exchange(form, json);
      case "/logout":
        return leave(url.searchParams.get("post_logout_redirect_uri"), {});
      default:
        return response.writeHead(404).end();
    }
  }

  authorize(query, response, leave) {
    const asked = Object.fromEntries(query);
    const isRight =
      asked.response_type === "code" &&
      asked.client_id === this.faults.client &&
      asked.redirect_uri === this.redirectUri &&
      asked.code_challenge_method === "S256" &&
      asked.scope.split(" ").includes("openid");
    if (!isRight) return response.writeHead(400).end("wrong request");
    const state = this.faults.state ?? asked.state;
    if (this.faults.refuses) return leave(asked.redirect_uri, { error: this.faults.refuses, state });
    const code = randomUUID();
    this.codes.set(code, asked);
    return leave(asked.redirect_uri, { code, state, iss: this.url });
  }

  exchange(form, json) {
    const grant = form.get("grant_type");
    if (form.get("client_id") !== this.faults.client) return json({ error: "invalid_client" }, 401);
    if (grant === "refresh_token") {
      if (!this.refreshToken || form.get("refresh_token") !== this.refreshToken)
        return json({ error: "invalid_grant" }, 400);
      return json(this.tokens(undefined, 3600));
    }
    const asked = this.codes.get(form.get("code"));
    this.codes.delete(form.get("code"));
    const challenge = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    const isRight = asked?.code_challenge === challenge && asked.redirect_uri === form.get("redirect_uri");
    if (!isRight) return json({ error: "invalid_grant" }, 400);
    return json(this.tokens(asked.nonce, this.faults.seconds));
  }

  tokens(nonce, seconds) {
    const { faults } = this;
    if (faults.refreshes) this.refreshToken = randomUUID();
    const scope = faults.scope ?? "use knowledge:write";
    const id = {
      aud: faults.idAudience ?? CLIENT,
      nonce: faults.nonce ?? nonce,
      scope,
    };
    return {
      token_type: "Bearer",
      expires_in: seconds,
      access_token: this.token({ aud: faults.audience, scope }, seconds),
      id_token: this.token(id, faults.idSeconds ?? 3600),
      ...(faults.refreshes && { refresh_token: this.refreshToken }),
    };
  }

  token(claims, seconds) {
    const now = Math.floor(Date.now() / 1000);
    const header = { alg: "RS256", kid: "k1" };
    const common = { iss: this.url, sub: this.faults.sub, jti: randomUUID() };
    const payload = { ...common, ...claims, exp: now + seconds };
    const signed = `${encode(header)}.${encode(payload)}`;
    return `${signed}.${sign("sha256", Buffer.from(signed), KEYS.privateKey).toString("base64url")}`;
  }
}
