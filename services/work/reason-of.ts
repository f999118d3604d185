import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { maskUrl } from '#shared/telemetry/redact.ts';

const MAX_REASON_CHARACTERS = 500;

/** Why an item was given up, for the operator. */
export function reasonOf(error: unknown): string {
  if (error instanceof SwitchyardError) return maskUrl(error.message).slice(0, MAX_REASON_CHARACTERS);
  return error instanceof Error ? maskUrl(`${error.name}: ${error.message}`).slice(0, MAX_REASON_CHARACTERS) : 'unknown';
}
