import type { BundleBody } from '#shared/config/bundle-body.ts';
import { expandMacros } from './expand-macros.ts';

/** A session's first message, macros expanded; null when there is none or it is blank. */
export function greetingOf({ manifest, documents }: BundleBody): string | null {
  const { greeting } = manifest.agent_config.context;
  if (greeting === null) return null;
  const text = expandMacros(greeting, documents);
  return text.trim() === '' ? null : text;
}
