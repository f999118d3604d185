import { expect, it } from 'vitest';
import { bedrockConfig } from './config.ts';

const blockIn = (region: string) => ({ slug: 'aws', kind: 'bedrock', region, api_key: '${A}' });

it.each(['eu-central-1', 'us-gov-west-1', 'cn-north-1'])('has an address for the region %s', (region) => {
  expect(bedrockConfig.safeParse(blockIn(region)).success).toBe(true);
});

it.each(['eusc-de-east-1', 'us-iso-east-1', 'us-isob-east-1', 'eu-isoe-west-1'])('needs a base_url for %s, whose partition has hosts of its own', (region) => {
  const { error } = bedrockConfig.safeParse(blockIn(region));
  expect(error?.issues).toMatchObject([{ path: ['base_url'] }]);
  expect(bedrockConfig.safeParse({ ...blockIn(region), base_url: 'https://bedrock.test' }).success).toBe(true);
});
