#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { requireNode } from './node-version.mjs';

requireNode();
const [command] = process.argv.slice(2);
// In a clone these two make the build, of which the others are a part.
if (command === 'start' || command === 'cluster') {
  process.argv.splice(2, 1);
  await (command === 'start' ? import('./start.mjs') : import('./cluster.mjs'));
} else await operate();

async function operate() {
  const main = new URL('../dist/services/operator/main.js', import.meta.url);
  if (existsSync(main)) {
    process.setSourceMapsEnabled(true);
    await import(main.href);
    return;
  }
  console.error('There is no build in dist/ yet. This makes one:\n  node scripts/prepare.mjs --build');
  process.exitCode = 1;
}
