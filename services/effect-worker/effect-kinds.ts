import { deliveryKind } from './deliveries/delivery-kind.ts';
import { toolKind } from './tools/tool-kind.ts';

/** The kinds of work of this worker; `--kinds` selects among them. */
export const effectKinds = [toolKind, deliveryKind] as const;

export type EffectKind = (typeof effectKinds)[number]['name'];
