import type { EndedWork } from '#actors/runtime/apply/commit-rows.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { genAi } from '#shared/telemetry/gen-ai.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { contextBelow, spanIdOf } from '#shared/telemetry/trace-context.ts';
import { noTracing, type Tracing } from '#shared/telemetry/tracing.ts';

interface RecordDeps {
  tracing: Tracing;
  bundleOf(hash: string): Promise<Bundle>;
  log: Log;
}

/** Outcomes that are not errors. */
const SUCCESSFUL = ['completed', 'succeeded', 'cancelled'];

/** Of kinds that are parts of turns; turns and runs invoke the agent. */
const PARTS: Readonly<Record<string, string>> = { plan: 'plan' };

/**
 * Records an ended turn or run, and each ended part of one, as a span after its last commit. Turns outlive processes, so the host that commits the end makes the span
 * from the commit. Its id is derived from the turn's, and the spans of its effects name it as parent already.
 */
export function recordEnded({ tracing, bundleOf, log }: RecordDeps): (ended: EndedWork, epoch?: number) => void {
  if (tracing === noTracing) return () => {};
  return (ended, epoch) => {
    bundleOf(ended.bundleHash)
      .catch((error: unknown) => {
        log.debug({ err: error, bundle: ended.bundleHash }, 'a span lacks the name of its agent');
        return null;
      })
      .then((bundle) => record(tracing, ended, { bundle, epoch }))
      .catch((error: unknown) => log.warn({ err: error }, 'a span could not be recorded'));
  };
}

function record(tracing: Tracing, ended: EndedWork, { bundle, epoch }: { bundle: Bundle | null; epoch: number | undefined }): void {
  const { kind, id, partOf, sessionId, routineId, parent, startedAtMs, endedAtMs, outcome } = ended;
  const manifest = bundle?.body.manifest;
  const workflow = kind === 'run' ? workflowIn(bundle, routineId) : null;
  const operation = workflow === null ? (PARTS[kind] ?? 'invoke_agent') : 'invoke_workflow';
  const subject = workflow ?? manifest?.name;
  const subjectKind = partOf === undefined ? kind : 'turn';
  const { attributes = {}, events = [] } = ended.details?.(tracing.content) ?? {};
  tracing.record({
    name: subject === undefined ? operation : `${operation} ${subject}`,
    kind: 'internal',
    scope: 'switchyard.gen_ai',
    parent: partOf === undefined ? parent : contextBelow(parent, partOf),
    spanId: spanIdOf(id),
    startMs: startedAtMs,
    endMs: endedAtMs,
    errorType: SUCCESSFUL.includes(outcome) ? null : outcome,
    events,
    attributes: {
      [genAi.operation]: operation,
      [genAi.workflow]: workflow ?? undefined,
      [genAi.provider]: 'switchyard',
      [genAi.agentId]: manifest?.id,
      [genAi.agentName]: manifest?.name,
      [genAi.agentVersion]: manifest?.version,
      [genAi.requestModel]: manifest?.agent_config.llms.default,
      [genAi.conversation]: sessionId,
      'switchyard.session.id': sessionId,
      [`switchyard.${subjectKind}.id`]: partOf ?? id,
      [`switchyard.${subjectKind}.epoch`]: epoch,
      'switchyard.routine.id': routineId ?? undefined,
      'switchyard.outcome': outcome,
      ...attributes,
    },
  });
}

/** The name of a routine with steps. */
function workflowIn(bundle: Bundle | null, routineId: string | null): string | null {
  const routine = bundle?.body.documents.routines.find(({ id }) => id === routineId);
  return routine === undefined || routine.steps.length === 0 ? null : routine.title.trim() || routine.id;
}
