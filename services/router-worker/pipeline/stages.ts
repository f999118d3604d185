import { hideReasoning } from './hide-reasoning.ts';
import { pluginStages } from './plugin-stages.ts';
import type { Stage } from './stage.ts';

/** In the order in which they are applied. */
export const stages: readonly Stage[] = [...pluginStages, hideReasoning];
