import { printedName } from '../contracts/printed-name.ts';
import type { ManifestOutline } from './manifest-outline.ts';
import type { NamedDocuments, Report } from './named-documents.ts';

/** What a turn of the agent may have to read; beyond it are mistakes, and turns that no budget covers. */
const LIMITS = {
  policies: 500,
  /** Of an answer with as many verdicts. */
  policiesPerCall: 100,
  conditionChars: 2_000,
  actionChars: 8_000,
  /** Each is a line of the question. */
  disambiguates: 20,
  terms: 2_000,
  /** In one pass; a turn may need a second one, and makes 256 calls at most. */
  calls: 128,
} as const;

/** The manifest's default. */
const BATCH_SIZE = 5;
const LOW_BATCH_SIZE = 10;
/** Each class of policies and observations is cut by itself, so its last batch may be a small one. */
const CLASSES = 4;

/** Checks the sizes that decide how long an agent's turns take. */
export function checkEngineLimits({ context, runtime }: ManifestOutline, documents: NamedDocuments, manifestFile: string, report: Report): void {
  const inManifest = (path: readonly PropertyKey[], message: string) => report(manifestFile, ['agent_config', ...path], message);
  const count = context.policies?.length ?? 0;
  if (count > LIMITS.policies) inManifest(['context', 'policies'], `must not be more than ${LIMITS.policies}: there are ${count}`);
  if ((runtime?.policy_batch_size ?? 0) > LIMITS.policiesPerCall)
    inManifest(['runtime', 'policy_batch_size'], `must not be more than ${LIMITS.policiesPerCall}`);
  for (const { file, document } of documents.policies) {
    const expectAtMost = (field: 'condition' | 'action' | 'disambiguates', limit: number, unit: string) => {
      const { length } = document[field] ?? '';
      if (length > limit) report(file, [field], `must not be longer than ${limit} ${unit}`);
    };
    expectAtMost('condition', LIMITS.conditionChars, 'characters');
    expectAtMost('action', LIMITS.actionChars, 'characters');
    expectAtMost('disambiguates', LIMITS.disambiguates, 'references');
  }
  const calls = mostCalls(documents, Math.max(1, runtime?.policy_batch_size ?? BATCH_SIZE));
  if (calls > LIMITS.calls) {
    const fewer = 'name fewer policies, or raise runtime.policy_batch_size';
    inManifest(
      ['context', 'policies'],
      `may take ${calls} model calls to judge once, with conditions of routines, and at most ${LIMITS.calls} are made: ${fewer}`,
    );
  }
  const terms = documents.glossaries.reduce((sum, { document }) => sum + document.terms.length, 0);
  if (terms > LIMITS.terms) {
    inManifest(
      ['context', 'glossaries'],
      `must not have more than ${LIMITS.terms} terms: ${documents.glossaries.map(({ document }) => printedName(document.id)).join(', ')} have ${terms}`,
    );
  }
}

/** Of one pass, whatever class a policy has in a turn. */
function mostCalls({ policies, routines }: NamedDocuments, batchSize: number): number {
  const asked = policies.filter(({ document }) => document.enabled && document.condition !== null);
  const single = asked.filter(({ document }) => document.disambiguates.length > 0).length;
  const low = asked.filter(({ document }) => document.criticality === 'low').length;
  const conditions = routines.reduce((sum, { document }) => sum + (document.kind === 'autonomous' ? 0 : document.conditions.length), 0);
  const others = Math.max(0, asked.length - single - low) + conditions;
  return single + Math.ceil(low / LOW_BATCH_SIZE) + Math.ceil(others / batchSize) + (others > 0 ? CLASSES - 1 : 0);
}
