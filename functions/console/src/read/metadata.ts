/** Return metadata as a line. */
export function inWords(metadata: Readonly<Record<string, unknown>> | null | undefined): string {
  return Object.entries(metadata ?? {})
    .map(([name, value]) => `${name}: ${String(value)}`)
    .join(", ");
}
