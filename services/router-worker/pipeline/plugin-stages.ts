import type { ChatRequest, PluginId } from '#shared/contracts/router/chat-request.ts';
import { type AppliedPlugin, isEnabled } from '#shared/contracts/router/plugins.ts';
import { moderation } from './moderation.ts';
import { responseHealing } from './response-healing.ts';
import type { PluginStage, Stage } from './stage.ts';
import { web } from './web.ts';

/** Typed by the contract's list: exactly the plugins that it has as applied have a stage. */
const stageOf: { readonly [Id in PluginId]: Id extends AppliedPlugin ? PluginStage : null } = {
  moderation,
  web,
  'file-parser': null,
  'response-healing': responseHealing,
};

export const pluginStages: readonly Stage[] = Object.entries<PluginStage | null>(stageOf).flatMap(([id, stage]) =>
  stage === null ? [] : [{ ...stage, appliesTo: asksFor(id) }],
);

function asksFor(id: string): (request: ChatRequest) => boolean {
  return ({ plugins }) => plugins?.some((plugin) => plugin.id === id && isEnabled(plugin)) ?? false;
}
