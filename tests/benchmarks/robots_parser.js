// Times robots-parser for node. Reads {url, token, rounds, bodies} as JSON, with bodies in base64, from the standard input.
// Prints, for each body, the median of the seconds for parsing and one answer.
const robotsParser = require("robots-parser");
const { url, token, rounds, bodies } = JSON.parse(require("fs").readFileSync(0));
const octets = bodies.map((body) => Buffer.from(body, "base64"));
const samples = octets.map(() => []);
for (let round = 0; round < rounds; round++) {
  octets.forEach((body, at) => {
    const began = process.hrtime.bigint();
    robotsParser("https://www.example.com/robots.txt", body.toString()).isAllowed(url, token);
    samples[at].push(Number(process.hrtime.bigint() - began) / 1e9);
  });
}
const median = (sample) => sample.sort((a, b) => a - b)[sample.length >> 1];
console.log(JSON.stringify(samples.map(median)));
