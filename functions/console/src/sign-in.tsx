import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "./components/button";
import { Field } from "./components/field";
import { toApiError } from "./errors";
import { signIn } from "./identity";
import { Mark } from "./layout";
import { config } from "./session";

/** The page of those who have not signed in. */
export function SignInPage(): JSX.Element {
  return (
    <main class="sign-in" id="content">
      <p class="brand">
        <Mark /> Stint
      </p>
      <div class="card">
        <h1>Sign in</h1>
        <SignInForm />
      </div>
    </main>
  );
}

export function SignInForm({ intro }: { intro?: string }): JSX.Element {
  const [credential, setCredential] = useState("");
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    const given = credential.trim();
    if (!given) {
      setError("Enter a key.");
      return;
    }
    setBusy(true);
    setError("");
    try {
      await signIn(given);
    } catch (failure) {
      const { status, message } = toApiError(failure);
      setError(status === 401 ? "This key is wrong, expired or revoked." : message);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      {intro && <p>{intro}</p>}
      <Field label="API key" hint={hint()} error={error}>
        {(ids) => (
          <input
            {...ids}
            class="mono"
            type="password"
            autoComplete="off"
            spellcheck={false}
            placeholder="stk_…"
            value={credential}
            onInput={(event) => setCredential(event.currentTarget.value)}
          />
        )}
      </Field>
      <Button type="submit" kind="primary" busy={isBusy}>
        Sign in
      </Button>
    </form>
  );
}

function hint(): string {
  const stays = "The key stays in this tab, and is sent to this server only.";
  return config.value?.local ? `make run printed the first key when it started. ${stays}` : stays;
}
