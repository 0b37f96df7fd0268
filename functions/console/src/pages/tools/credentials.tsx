import type { JSX } from "preact";
import { TextField } from "../../components/field";
import { faultOf, providerData } from "./api";

/** A field for credentials of the reader, which some tools need. */
export function Credentials(): JSX.Element {
  const text = providerData.value;
  return (
    <details>
      <summary>Your own credentials</summary>
      <TextField
        label="Provider data as JSON"
        hint='Sent with requests for tools until the page is closed, and stored nowhere. Such as {"mcp_headers": {"https://host/mcp": {"Authorization": "Bearer …"}}}, or a tavily_search_api_key.'
        error={text.trim() && faultOf(text)}
        class="mono"
        rows={3}
        spellcheck={false}
        autoComplete="off"
        value={text}
        onText={(next) => (providerData.value = next)}
      />
    </details>
  );
}
