import type { BundleBody } from '#shared/config/bundle-body.ts';
import { addedText } from '../engine/composition/added-text.ts';
import { glossaryTerms, nearestTerms } from '../engine/composition/nearest-terms.ts';
import { draftIn } from '../engine/composition/reply-check.ts';
import { engineDocumentsOf } from '../engine/engine-documents.ts';
import { promptOf } from '../engine/prompt-of.ts';
import type { StepView } from '../engine/step.ts';
import { isAnnouncement } from '../engine/tools/announcement.ts';
import type { StagedCall } from '../engine/tools/tool-batch.ts';
import { currentRows, type TurnRow } from '../engine/turn-row.ts';
import { shownVariables } from '../engine/variables/variable-values.ts';
import { type KnownCustomer, unknownCustomer } from '../inputs/customer-reader.ts';
import type { EffectRow } from './effect-row.ts';
import type { RenderDeps } from './render-deps.ts';
import { turnRowsBelow } from './turn-rows-below.ts';

/** What a turn's prompt is made from: documents, and the conversation up to the event of the effect's inputs. */
export async function stepView(
  effect: EffectRow & { inputs: { upToOffset: number; staged?: number | undefined; customerId?: string | undefined } },
  body: BundleBody,
  { name, values }: KnownCustomer,
  deps: Pick<RenderDeps, 'histories' | 'turns'>,
): Promise<StepView> {
  const { manifest, documents } = body;
  const { context } = manifest.agent_config;
  const { staged = 0 } = effect.inputs;
  const rows = staged === 0 ? [] : await turnRowsBelow(staged, effect.actorId, deps);
  const history = (await deps.histories.upTo(effect.inputs.upToOffset, effect)).filter((event) => !isAnnouncement(event));
  const draft = rows.length === 0 ? null : draftIn(rows);
  return {
    callId: effect.id,
    nowMs: effect.createdAtMs,
    agent: { id: manifest.id, name: manifest.name },
    customerName: name,
    systemPrompt: promptOf(documents, context.system_prompt),
    language: context.language,
    glossary: nearestTerms(glossaryTerms(body), history, () => addedText(history, rows, engineDocumentsOf(body)), nearestByVectors(rows)),
    // Rows of releases before name no customer.
    variables: effect.inputs.customerId === undefined ? [] : shownVariables(documents, values),
    history,
    ...(draft !== null && { draft: draft.text }),
    ...faultIn(rows),
    retrieved: retrievedIn(rows),
    // The others are in the log, and so in the history.
    staged: rows.flatMap((row) => (row.kind === 'tool' && row.call.control.lifespan === 'response' ? [stagedResult(row.call)] : [])),
  };
}

/** What the turn's prompts know of the session's customer. */
export async function customerOfTurn(
  { actorId, sessionId, inputs: { customerId, bundleHash } }: EffectRow & { inputs: { customerId?: string | undefined; bundleHash: string } },
  { documents }: BundleBody,
  { customers }: Pick<RenderDeps, 'customers'>,
): Promise<KnownCustomer> {
  return customerId === undefined ? unknownCustomer : await customers.ofTurn(actorId, { sessionId, customerId, bundleHash }, documents);
}

/** A question that is asked once more is opened right after the row of the answer to it. */
function faultIn(rows: readonly TurnRow[]): Pick<StepView, 'fault'> {
  const last = rows.at(-1);
  return last?.kind === 'malformed' ? { fault: last.reason } : {};
}

/** Before a message joined, another query was searched for. */
function retrievedIn(rows: readonly TurnRow[]): NonNullable<StepView['retrieved']> {
  return rows.length === 0 ? [] : (currentRows(rows).rows.findLast((row) => row.kind === 'search')?.documents ?? []);
}

/** Before a message joined, another talk was compared. Undefined: shared words decide. */
function nearestByVectors(rows: readonly TurnRow[]): readonly number[] | undefined {
  return rows.length === 0 ? undefined : currentRows(rows).rows.findLast((row) => row.kind === 'likeness')?.terms;
}

/** As models see it. */
function stagedResult({ toolId, arguments: given, result }: StagedCall): StepView['staged'][number] {
  return { toolId, arguments: given, result: result.data };
}
