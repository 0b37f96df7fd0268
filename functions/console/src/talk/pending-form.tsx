/** What a run waits for: results of the client's calls, and approvals of calls that the server runs. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../components/button";
import { Check } from "../components/check";
import { TextField } from "../components/field";
import { LongText } from "../components/long-text";
import { SchemaForm } from "../components/schema-form";
import { ErrorState } from "../components/states";
import { type ApiError, isRecord } from "../errors";
import { cut } from "../format";
import { fieldsOf, type FieldTexts, type JsonSchema, readFields, toText } from "../schema";
import { prettyJson } from "./content";
import { useDraft } from "./draft";

export interface PendingCall {
  callId: string;
  name: string;
  input: string;
  description: string;
  /** Of the arguments; null if the tool is not known. */
  schema: JsonSchema | null;
  /** Of the result, if the tool declares it. */
  resultSchema: JsonSchema | null;
}

export interface PendingApproval {
  requestId: string;
  /** The label of the MCP server; empty if it is not known. */
  server: string;
  name: string;
  input: string;
  /** Forms of the tool's server, which asks in the middle of the call. */
  forms?: readonly AskedForm[];
}

export interface AskedForm {
  key: string;
  message: string;
  schema: JsonSchema;
}

export interface Answers {
  /** Results by the id of the call. */
  results: Readonly<Record<string, string>>;
  /** Decisions by the id of the request. */
  approvals: Readonly<Record<string, boolean>>;
  /** What is filled into the forms of servers, by the id of the request. */
  inputs: Readonly<Record<string, Record<string, unknown>>>;
}

interface PendingFormProps {
  /** The run, for the draft. */
  id: string;
  calls: readonly PendingCall[];
  approvals: readonly PendingApproval[];
  isBusy: boolean;
  error: ApiError | null;
  onSend: (answers: Answers) => void;
}

/** So many forms are on the page. */
const PAGE = 10;

export function PendingForm({ id, calls, approvals, isBusy, error, onSend }: PendingFormProps): JSX.Element {
  const draft = useDraft(`answers.${id}`, "{}");
  const answers = (parseObject(draft.text) ?? {}) as FieldTexts;
  const [problems, setProblems] = useState<FieldTexts>({});
  const [start, setStart] = useState(0);
  const change = (changes: FieldTexts) => draft.set(JSON.stringify({ ...answers, ...changes }));
  const submit = (event: Event) => {
    event.preventDefault();
    const [sent, found] = checkAnswers(calls, approvals, answers);
    setProblems(found);
    const first = calls.findIndex(({ callId }) => Object.keys(found).some((key) => key.startsWith(`${callId}\n`)));
    if (first >= 0 && (first < start || first >= start + PAGE)) setStart(first - (first % PAGE));
    if (Object.keys(found).length === 0) onSend(sent);
  };
  const count = calls.length + approvals.length;
  return (
    <form class="card pending" aria-label="What the run waits for" onSubmit={submit}>
      <h2>{count === 1 ? "One call is waiting for you" : `${count} calls are waiting for you`}</h2>
      {approvals.map((each) => (
        <ApprovalForm key={each.requestId} approval={each} answers={answers} problems={problems} onChange={change} />
      ))}
      {calls.slice(start, start + PAGE).map((call) => (
        <CallForm key={call.callId} call={call} answers={answers} problems={problems} onChange={change} />
      ))}
      {calls.length > PAGE && <Pager start={start} count={calls.length} onChange={setStart} />}
      {error && <ErrorState error={error} />}
      <div class="actions">
        <Button type="submit" kind="primary" busy={isBusy}>
          {calls.length === 0 ? "Send the decision" : "Send and continue"}
        </Button>
      </div>
    </form>
  );
}

function Pager({
  start,
  count,
  onChange,
}: {
  start: number;
  count: number;
  onChange: (start: number) => void;
}): JSX.Element {
  return (
    <div class="actions">
      <Button disabled={start === 0} onClick={() => onChange(start - PAGE)}>
        Earlier calls
      </Button>
      <span class="hint">
        {start + 1} to {Math.min(start + PAGE, count)} of {count}
      </span>
      <Button disabled={start + PAGE >= count} onClick={() => onChange(start + PAGE)}>
        Later calls
      </Button>
    </div>
  );
}

interface OneProps {
  answers: FieldTexts;
  problems: FieldTexts;
  onChange: (changes: FieldTexts) => void;
}

function CallForm({ call, answers, problems, onChange }: OneProps & { call: PendingCall }): JSX.Element {
  const { callId, name, input, description, schema, resultSchema } = call;
  const key = (field: string) => `${callId}\n${field}`;
  const given = parseObject(input);
  const fields = schema && given ? fieldsOf(schema) : [];
  const known = new Set(fields.map((field) => field.name));
  const rest = given && Object.fromEntries(Object.entries(given).filter(([each]) => !known.has(each)));
  const results = resultSchema ? fieldsOf(resultSchema) : [];
  const own = (texts: FieldTexts) =>
    Object.fromEntries(results.map(({ name: each }) => [each, texts[key(each)] ?? ""]));
  return (
    <fieldset class="pending-call">
      <legend>
        <code>{cut(name, 100)}</code>
      </legend>
      {description && <p class="hint">{cut(description, 1000)}</p>}
      {given && fields.length > 0 && (
        <SchemaForm
          fields={fields.filter((field) => field.name in given || field.isRequired)}
          texts={Object.fromEntries(fields.map((field) => [field.name, toText(given[field.name], field.type)]))}
        />
      )}
      {(!rest || Object.keys(rest).length > 0) && (
        <LongText text={prettyJson(rest ? JSON.stringify(rest) : input)} label="Other arguments" />
      )}
      {results.length > 0 ? (
        <SchemaForm
          fields={results}
          texts={own(answers)}
          problems={own(problems)}
          onChange={(texts) =>
            onChange(Object.fromEntries(Object.entries(texts).map(([each, text]) => [key(each), text])))
          }
        />
      ) : (
        <TextField
          label={`Result of ${cut(name, 60)}`}
          hint="Text or JSON, as the tool returns it."
          error={problems[key("")] ?? ""}
          rows={3}
          value={answers[key("")] ?? ""}
          onText={(text) => onChange({ [key("")]: text })}
        />
      )}
    </fieldset>
  );
}

function ApprovalForm({
  approval,
  answers,
  problems,
  onChange,
}: OneProps & { approval: PendingApproval }): JSX.Element {
  const { requestId, server, name, input, forms = [] } = approval;
  return (
    <fieldset class="pending-call">
      <legend>
        {server && server !== name && `${cut(server, 60)} · `}
        <code>{cut(name, 100)}</code>
      </legend>
      <p>
        {forms.length === 0
          ? "The server runs this call only if you approve it."
          : "The server of this tool, which others may run, asks you. Give it no passwords."}
      </p>
      <LongText text={prettyJson(input)} label="Arguments" />
      {forms.map((form) => (
        <AskedFields
          key={form.key}
          form={form}
          at={fieldKey(requestId, form)}
          answers={answers}
          problems={problems}
          onChange={onChange}
        />
      ))}
      <div class="actions" role="radiogroup" aria-label={`Decision on ${cut(name, 60)}`}>
        {(["approve", "deny"] as const).map((choice) => (
          <Check
            key={choice}
            name={requestId}
            label={choice === "approve" ? "Approve" : "Deny"}
            isOn={answers[requestId] === choice}
            onChange={() => onChange({ [requestId]: choice })}
          />
        ))}
      </div>
      {problems[requestId] && (
        <p class="field-error" role="alert">
          {problems[requestId]}
        </p>
      )}
    </fieldset>
  );
}

const fieldKey = (requestId: string, form: AskedForm) => (field: string) => `${requestId}\n${form.key}\n${field}`;

function AskedFields({
  form,
  at,
  answers,
  problems,
  onChange,
}: OneProps & { form: AskedForm; at: (field: string) => string }): JSX.Element {
  const fields = fieldsOf(form.schema);
  const own = (texts: FieldTexts) => Object.fromEntries(fields.map(({ name }) => [name, texts[at(name)] ?? ""]));
  return (
    <>
      <LongText text={form.message} label="Question" />
      {fields.length > 0 && (
        <SchemaForm
          fields={fields}
          texts={own(answers)}
          problems={own(problems)}
          onChange={(texts) =>
            onChange(Object.fromEntries(Object.entries(texts).map(([each, text]) => [at(each), text])))
          }
        />
      )}
    </>
  );
}

function checkAnswers(
  calls: readonly PendingCall[],
  approvals: readonly PendingApproval[],
  answers: FieldTexts,
): [Answers, FieldTexts] {
  const problems: Record<string, string> = {};
  const results: Record<string, string> = {};
  for (const { callId, resultSchema } of calls) {
    const fields = resultSchema ? fieldsOf(resultSchema) : [];
    if (fields.length === 0) {
      const text = answers[`${callId}\n`] ?? "";
      if (!text.trim()) problems[`${callId}\n`] = "Write what the tool returns.";
      results[callId] = text;
      continue;
    }
    const texts = Object.fromEntries(fields.map(({ name }) => [name, answers[`${callId}\n${name}`] ?? ""]));
    const [value, found] = readFields(fields, texts);
    for (const [name, problem] of Object.entries(found)) problems[`${callId}\n${name}`] = problem;
    results[callId] = JSON.stringify(value);
  }
  const decisions: Record<string, boolean> = {};
  const inputs: Record<string, Record<string, unknown>> = {};
  for (const { requestId, forms = [] } of approvals) {
    if (!answers[requestId]) problems[requestId] = "Approve or deny the call.";
    decisions[requestId] = answers[requestId] === "approve";
    if (!decisions[requestId] || forms.length === 0) continue;
    const filled = forms.map((form): [string, unknown] => {
      const at = fieldKey(requestId, form);
      const fields = fieldsOf(form.schema);
      const texts = Object.fromEntries(fields.map(({ name }) => [name, answers[at(name)] ?? ""]));
      const [value, found] = readFields(fields, texts);
      for (const [name, problem] of Object.entries(found)) problems[at(name)] = problem;
      return [form.key, value];
    });
    inputs[requestId] = forms.length === 1 ? (filled[0]![1] as Record<string, unknown>) : Object.fromEntries(filled);
  }
  return [{ results, approvals: decisions, inputs }, problems];
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}
