import type { BundleBody } from '#shared/config/bundle-body.ts';
import { expandMacros } from './expand-macros.ts';

/** The first message of a session, macros expanded. Null when none is configured or only white space is left. */
export function greetingOf({ manifest, documents }: BundleBody): string | null {
  const { greeting } = manifest.agent_config.context;
  if (greeting === null) return null;
  const text = expandMacros(greeting, documents);
  return text.trim() === '' ? null : text;
}
