/** End users: what belongs to one, export, erasure. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../components/button";
import { TextField } from "../components/field";
import { PageHead } from "../components/head";
import { UserObjects } from "./users/user-objects";

const LONGEST = 512;

// The id stays out of the address of the page, because addresses are kept in histories and logs.
export default function UsersPage(): JSX.Element {
  const [text, setText] = useState("");
  const [found, setFound] = useState({ user: "", attempt: 0 });
  const [error, setError] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    const words = faultOf(text);
    setError(words);
    if (!words) setFound({ user: text, attempt: found.attempt + 1 });
  };
  return (
    <div class="page page-wide">
      <PageHead
        title="End users"
        lead="The people for whom applications act. Find one by the id that the application sends."
      />
      <form class="line-form" onSubmit={submit} role="search">
        <TextField
          label="Id of the end user"
          error={error}
          autoComplete="off"
          autoCapitalize="off"
          spellcheck={false}
          placeholder="ann@example.com"
          value={text}
          onText={setText}
        />
        <Button type="submit" kind="primary">
          Find
        </Button>
      </form>
      {found.user && <UserObjects key={`${found.attempt}`} user={found.user} />}
    </div>
  );
}

function faultOf(user: string): string {
  if (!user) return "Enter an id.";
  if (new TextEncoder().encode(user).length > LONGEST) return `An id has at most ${LONGEST} bytes.`;
  // Addresses cannot have such a part, in whatever encoding.
  if (/^\.{1,2}$/.test(user)) return "A browser cannot ask for this id. Use the command: python -m stint.cli users.";
  return "";
}
