import type { ChatRequest, PluginId } from '#shared/contracts/router/chat-request.ts';
import { type AppliedPlugin, isEnabled } from '#shared/contracts/router/plugins.ts';
import type { Stage } from './stage.ts';

type PluginStage = Omit<Stage, 'appliesTo'>;

/** Typed by the contract's list: exactly the plugins that it has as applied have a stage. */
const stageOf: { readonly [Id in PluginId]: Id extends AppliedPlugin ? PluginStage : null } = {
  moderation: null,
  web: null,
  'file-parser': null,
  'response-healing': null,
};

export const pluginStages: readonly Stage[] = Object.entries<PluginStage | null>(stageOf).flatMap(([id, stage]) =>
  stage === null ? [] : [{ ...stage, appliesTo: asksFor(id) }],
);

function asksFor(id: string): (request: ChatRequest) => boolean {
  return ({ plugins }) => plugins?.some((plugin) => plugin.id === id && isEnabled(plugin)) ?? false;
}
