import { z } from 'zod';
import { SwitchyardError } from '../errors/switchyard-error.ts';

/** Kinds of events in a session's log. */
const KINDS: ReadonlySet<string> = new Set(['user_message', 'preamble', 'assistant_message', 'status', 'tool', 'custom']);

/** Checked again at each attempt, by the resolved address. */
export const eventWebhookUrl = z.url({ protocol: /^https?$/ }).refine((text) => new URL(text).username === '' && new URL(text).password === '', {
  message: 'must not contain a user or a password',
});

/** Comma-separated. */
export const eventWebhookKinds = z.string().transform((text, context) => {
  const kinds = text.split(',').map((kind) => kind.trim());
  const unknown = kinds.filter((kind) => !KINDS.has(kind));
  if (unknown.length > 0) context.addIssue({ code: 'custom', message: `must be kinds of events separated by commas, among ${[...KINDS].join(', ')}` });
  return [...new Set(kinds)];
});

interface Settings {
  EVENT_WEBHOOK_URL?: string | undefined;
  EVENT_WEBHOOK_KINDS?: string[] | undefined;
  AUTONOMOUS_CALLBACK_MAX_RETRIES: number;
}

/** Where the events of all sessions are posted, and how often one is attempted. @throws `config.invalid` for kinds without an address */
export function eventWebhooksOf({ EVENT_WEBHOOK_URL: url, EVENT_WEBHOOK_KINDS: kinds, AUTONOMOUS_CALLBACK_MAX_RETRIES: maxAttempts }: Settings) {
  if (url === undefined && kinds !== undefined) throw new SwitchyardError('config.invalid', 'EVENT_WEBHOOK_KINDS has no effect without EVENT_WEBHOOK_URL');
  return { deployment: url === undefined ? null : { url, kinds: kinds ?? null }, maxAttempts };
}
