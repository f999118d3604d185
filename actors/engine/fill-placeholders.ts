/** What the placeholders of a prompt stand for. */
export interface PlaceholderValues {
  agent: { id: string; name: string };
  /** The instant that `{{now}}` stands for, epoch milliseconds. */
  nowMs: number;
}

/** `{{agent.name}}`, `{{agent.id}}` and `{{now}}` are filled in; a placeholder that we do not know stays as it is. */
export function fillPlaceholders(text: string, { agent, nowMs }: PlaceholderValues): string {
  const values: Record<string, string> = { 'agent.name': agent.name, 'agent.id': agent.id, now: new Date(nowMs).toISOString() };
  return text.replaceAll(/\{\{\s*([a-z.]+)\s*\}\}/g, (whole, name: string) => (Object.hasOwn(values, name) ? String(values[name]) : whole));
}
