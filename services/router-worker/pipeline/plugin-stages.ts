import type { ChatRequest, PluginId } from '#shared/contracts/router/chat-request.ts';
import { type AppliedPlugin, isEnabled } from '#shared/contracts/router/plugins.ts';
import { askedParsing } from '#shared/prompts/asked-parsing.ts';
import { fileParser } from './file-parser.ts';
import { moderation } from './moderation.ts';
import { responseHealing } from './response-healing.ts';
import type { PluginStage, Stage } from './stage.ts';
import { web } from './web.ts';

/** In the order in which they are applied. Typed by the contract's list: exactly the plugins that it has as applied have a stage. */
const stageOf: { readonly [Id in PluginId]: Id extends AppliedPlugin ? PluginStage : null } = {
  // First: moderation reads what files contain.
  'file-parser': fileParser,
  moderation,
  web,
  'response-healing': responseHealing,
};

export const pluginStages: readonly Stage[] = Object.entries<PluginStage | null>(stageOf).flatMap(([id, stage]) =>
  stage === null ? [] : [{ ...stage, appliesTo: asksFor(id) }],
);

function asksFor(id: string): (request: ChatRequest) => boolean {
  // PDFs are read for requests that do not name it, too.
  if (id === 'file-parser') return (request) => askedParsing(request) !== null;
  return ({ plugins }) => plugins?.some((plugin) => plugin.id === id && isEnabled(plugin)) ?? false;
}
