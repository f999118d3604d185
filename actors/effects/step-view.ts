import type { BundleBody } from '#shared/config/bundle-body.ts';
import { promptOf } from '../engine/prompt-of.ts';
import type { StepView } from '../engine/step.ts';
import type { EffectRow } from './effect-row.ts';
import type { RenderDeps } from './render-deps.ts';

/** What a turn's prompt is made from: documents, and the conversation up to the event of the effect's inputs. */
export async function stepView(
  effect: EffectRow & { inputs: { upToOffset: number } },
  { manifest, documents }: BundleBody,
  deps: Pick<RenderDeps, 'histories'>,
): Promise<StepView> {
  const { context } = manifest.agent_config;
  return {
    callId: effect.id,
    nowMs: effect.createdAtMs,
    agent: { id: manifest.id, name: manifest.name },
    customerName: null,
    systemPrompt: promptOf(documents, context.system_prompt),
    language: context.language,
    glossary: context.glossaries.flatMap(({ id, version }) => documents.glossaries.find((one) => one.id === id && one.version === version)?.terms ?? []),
    variables: [],
    history: await deps.histories.upTo(effect.inputs.upToOffset, effect),
    staged: [],
  };
}
