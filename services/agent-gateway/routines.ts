import type { Bundle } from '#shared/config/load-bundle.ts';
import type { Routine } from '#shared/contracts/documents/routine.ts';
import { quotedName } from '#shared/contracts/printed-name.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { compileSchema, type Validate } from '#shared/json-schema.ts';

type Autonomous = Extract<Routine, { kind: 'autonomous' }>;

export interface TriggerableRoutine extends Pick<Autonomous['autonomous'], 'webhook' | 'match'>, Pick<Autonomous, 'title' | 'conditions'> {
  id: string;
  /** Null: the input is valid. */
  violationOf: Validate;
  /** Null and an empty list both mean any host. */
  callbackUrlAllowlist: readonly string[] | null;
  timeoutMs: number;
}

interface RunSettings {
  defaultTimeoutMs: number;
  maxTimeoutMs: number;
  requireCallbackAllowlist: boolean;
}

/**
 * The autonomous, enabled routines by id.
 * @throws `config.invalid` for an invalid input schema, or a missing allow-list where one is required
 */
export function triggerableRoutines({ body }: Bundle, settings: RunSettings): ReadonlyMap<string, TriggerableRoutine> {
  const { defaultTimeoutMs, maxTimeoutMs, requireCallbackAllowlist } = settings;
  const found = new Map<string, TriggerableRoutine>();
  for (const routine of body.documents.routines) {
    // The first of several versions counts, as for the run itself.
    if (routine.kind !== 'autonomous' || !routine.enabled || found.has(routine.id)) continue;
    if (requireCallbackAllowlist && (routine.callback_url_allowlist?.length ?? 0) === 0)
      throw new SwitchyardError(
        'config.invalid',
        `the routine ${quotedName(routine.id)} has no callback_url_allowlist, which REQUIRE_CALLBACK_ALLOWLIST requires`,
      );
    const requestedMs = routine.timeout_seconds === null ? defaultTimeoutMs : routine.timeout_seconds * 1_000;
    found.set(routine.id, {
      id: routine.id,
      violationOf: compileSchema(routine.input_schema),
      callbackUrlAllowlist: routine.callback_url_allowlist,
      title: routine.title,
      conditions: routine.conditions,
      webhook: routine.autonomous.webhook,
      match: routine.autonomous.match,
      timeoutMs: Math.max(1, Math.round(Math.min(requestedMs, maxTimeoutMs))),
    });
  }
  return found;
}
