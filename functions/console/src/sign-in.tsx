import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useAction } from "./components/action";
import { Button } from "./components/button";
import { TextField } from "./components/field";
import { ApiError, toApiError } from "./errors";
import { identify, signIn } from "./identity";
import { Mark } from "./layout";
import { config, hasIssuer, signInFault } from "./session";

/** The page of those who have not signed in. */
export function SignInPage(): JSX.Element {
  return (
    <main class="sign-in" id="content">
      <p class="brand">
        <Mark /> Stint
      </p>
      <div class="card">
        <h1>Sign in</h1>
        <SignInChoices />
      </div>
    </main>
  );
}

/** The ways to sign in while the page is open. */
export function SignInAgain(): JSX.Element {
  return (
    <>
      <p>This tab is not signed in any more: its key or token is refused. What you typed is kept.</p>
      <SignInChoices isAgain />
    </>
  );
}

function SignInChoices({ isAgain = false }: { isAgain?: boolean }): JSX.Element {
  if (!hasIssuer()) return <SignInForm />;
  return (
    <>
      <IssuerButton isAgain={isAgain} />
      {config.value?.keys && (
        <details>
          <summary>Use an API key</summary>
          <SignInForm />
        </details>
      )}
    </>
  );
}

function IssuerButton({ isAgain }: { isAgain: boolean }): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  const press = async () => {
    setBusy(true);
    signInFault.value = "";
    try {
      // The code of the flow is there already: `start` has loaded it. A press may open a window only at once.
      const { leave, signInAgain } = await import("./oidc");
      await (isAgain ? signInAgain() : leave());
      if (!isAgain) return;
      await identify();
      setBusy(false);
    } catch (failure) {
      signInFault.value = toApiError(failure).message;
      setBusy(false);
    }
  };
  return (
    <div class="stack">
      {signInFault.value && (
        <p class="field-error" role="alert">
          {signInFault.value}
        </p>
      )}
      <Button kind="primary" busy={isBusy} onClick={() => void press()}>
        Sign in with {new URL(config.value!.issuer).host}
      </Button>
      {isAgain && isBusy && (
        <div class="actions">
          <span>Continue in the window that has opened.</span>
          <Button kind="quiet" onClick={() => setBusy(false)}>
            Try again
          </Button>
        </div>
      )}
    </div>
  );
}

function SignInForm(): JSX.Element {
  const [credential, setCredential] = useState("");
  const action = useAction(async () => {
    const given = credential.trim();
    if (!given) throw new ApiError(400, "no_key", "Enter a key.");
    await signIn(given);
  });
  const { error } = action;
  return (
    <form class="stack" onSubmit={action.run}>
      <TextField
        label="API key"
        hint={hint()}
        error={error?.status === 401 ? "This key is wrong, expired or revoked." : (error?.message ?? "")}
        class="mono"
        type="password"
        autoComplete="off"
        spellcheck={false}
        placeholder="stk_…"
        value={credential}
        onText={setCredential}
      />
      <Button type="submit" kind="primary" busy={action.isBusy}>
        Sign in
      </Button>
    </form>
  );
}

function hint(): string {
  const stays = "The key stays in this tab, and is sent to this server only.";
  return config.value?.local ? `The command “make run” printed the first key when it started. ${stays}` : stays;
}
