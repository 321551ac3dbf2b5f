PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE counters (
    name  TEXT    PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "counters" VALUES('run',2);
INSERT INTO "counters" VALUES('task',5);
CREATE TABLE events (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id   INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    at       TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    loop_id  TEXT,
    task_id  INTEGER,
    body     TEXT    NOT NULL,
    UNIQUE (run_id, seq)
) STRICT;
INSERT INTO "events" VALUES(1,0,1,'2026-11-18T15:32:35.874464235Z',1,'task.added',NULL,1,'{"spec":{"title":"Approve later","description":"Approve later","type":"implement","auto_review":true,"max_review_cycles":null,"effort":null,"model":null,"depends_on":[],"plan":null,"prompt":null,"continues":null,"first_review":null,"answers":null,"guidance":null,"origin":null},"auto_review":true,"max_review_cycles":3}');
INSERT INTO "events" VALUES(2,0,2,'2026-11-18T15:32:35.900609836Z',1,'task.added',NULL,2,'{"spec":{"title":"Never good","description":"Never good","type":"implement","auto_review":true,"max_review_cycles":2,"effort":null,"model":null,"depends_on":[],"plan":null,"prompt":null,"continues":null,"first_review":null,"answers":null,"guidance":null,"origin":null},"auto_review":true,"max_review_cycles":2}');
INSERT INTO "events" VALUES(3,0,3,'2026-11-18T15:32:35.932462304Z',1,'task.added',NULL,3,'{"spec":{"title":"Talk about it","description":"Talk about it","type":"implement","auto_review":true,"max_review_cycles":null,"effort":null,"model":null,"depends_on":[],"plan":null,"prompt":null,"continues":null,"first_review":null,"answers":null,"guidance":null,"origin":null},"auto_review":true,"max_review_cycles":3}');
INSERT INTO "events" VALUES(4,1,1,'2026-11-18T15:32:35.972055421Z',1,'run.opened',NULL,NULL,'{"policy":{"arrangement":"slots","landing":"none","jobs":1,"checkpoint_interval":null,"keep_going":true,"supply":"queue","stop_marker":false,"before":false,"after":false,"onto_default":false},"workflow":{"workflow":{"name":"task","description":"one task: implement, review, improve until approved","completion":"exit","landing":"none","arrangement":"queue","checkpoint_interval":null,"max_attempts":50,"max_passes":10,"max_recoveries":5,"max_conflicts":3,"max_rate_limits":20,"bounds_restarts":true,"attempts_exhausted_as":"failed","modes":[],"reviewers":{"general":{"kind":"general","contract":"markdown"}},"before":[],"phases":[{"name":"implement","kind":"agent","role":"implement","timeout":"1h","researchers":0,"per_item":false,"once":false,"mode":null},{"name":"review","kind":"gate","enabled":false,"reviewers":["general"],"fail_on":"LOW","on_failure":"mini-loop","max_cycles":3,"on_exhausted":"stop","exhausted_as":"attention","on_unclear":["retry","request-changes"],"on_reviewer_failure":"fail","on_fixer_failure":"fail","on_implementer_failure":"fail","on_discussion":"ask","author_output":false,"parallel_fixes":false,"require_nonce":null,"review_timeout":"10m","fix_timeout":"30m","rereview":"full","depth":"standard","max_same_finding":null,"max_noop_fixes":null,"restart_to":0,"fixer":"fix","per_item":false,"once":false,"mode":null}],"after":[]},"no_ask":false,"fix_needs_review":true}}');
INSERT INTO "events" VALUES(5,1,2,'2026-11-18T15:32:35.972055421Z',1,'run.started',NULL,NULL,'null');
INSERT INTO "events" VALUES(6,1,3,'2026-11-18T15:32:35.972055421Z',1,'run.task_picked',NULL,NULL,'{"loop_id":"1"}');
INSERT INTO "events" VALUES(7,1,4,'2026-11-18T15:32:35.972055421Z',1,'loop.added','1',NULL,'{"task":1,"title":"Approve later","branch":"signoff/task-1-approve-later"}');
INSERT INTO "events" VALUES(8,1,5,'2026-11-18T15:32:35.972055421Z',1,'loop.governed','1',NULL,'{"policy":{"workflow":{"name":"task","description":"one task: implement, review, improve until approved","completion":"exit","landing":"none","arrangement":"queue","checkpoint_interval":null,"max_attempts":50,"max_passes":10,"max_recoveries":5,"max_conflicts":3,"max_rate_limits":20,"bounds_restarts":true,"attempts_exhausted_as":"failed","modes":[],"reviewers":{"general":{"kind":"general","contract":"markdown"}},"before":[],"phases":[{"name":"implement","kind":"agent","role":"implement","timeout":"1h","researchers":0,"per_item":false,"once":false,"mode":null},{"name":"review","kind":"gate","enabled":true,"reviewers":["general"],"fail_on":"LOW","on_failure":"mini-loop","max_cycles":3,"on_exhausted":"stop","exhausted_as":"attention","on_unclear":["retry","request-changes"],"on_reviewer_failure":"fail","on_fixer_failure":"fail","on_implementer_failure":"fail","on_discussion":"ask","author_output":false,"parallel_fixes":false,"require_nonce":null,"review_timeout":"10m","fix_timeout":"30m","rereview":"full","depth":"standard","max_same_finding":null,"max_noop_fixes":null,"restart_to":0,"fixer":"fix","per_item":false,"once":false,"mode":null}],"after":[]},"no_ask":false,"fix_needs_review":true}}');
INSERT INTO "events" VALUES(9,1,6,'2026-11-18T15:32:35.98440796Z',1,'loop.placed','1',NULL,'{"base":"a04babbf70922fa3cb88df1cee1dabf3b514856f","worktree":"@WORK@/.signoff/worktrees/task-1"}');
INSERT INTO "events" VALUES(10,1,7,'2026-11-18T15:32:35.98440796Z',1,'loop.base_set','1',NULL,'{"tree":"facdb051ea0f23ba801529a2debb0384367c3482"}');
INSERT INTO "events" VALUES(11,1,8,'2026-11-18T15:32:35.98440796Z',1,'loop.started','1',NULL,'{"head":{"commit":"a04babbf70922fa3cb88df1cee1dabf3b514856f","tree":"facdb051ea0f23ba801529a2debb0384367c3482"}}');
INSERT INTO "events" VALUES(12,1,9,'2026-11-18T15:32:35.98440796Z',1,'loop.attempt_started','1',NULL,'{"attempt":1,"launch":{"agent":"scripted","model":null,"role":"implement","reviewer":null,"phase":"implement","cycle":0,"hold":"nobody"}}');
INSERT INTO "events" VALUES(13,1,10,'2026-11-18T15:32:35.98440796Z',1,'run.loop_moved',NULL,NULL,'{"loop_id":"1","standing":"active"}');
INSERT INTO "events" VALUES(14,1,11,'2026-11-18T15:32:36.01120316Z',1,'loop.used','1',NULL,'{"attempt":1,"usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":3}}');
INSERT INTO "events" VALUES(15,1,12,'2026-11-18T15:32:36.01120316Z',1,'loop.work_ended','1',NULL,'{"attempt":1,"report":{"complete":{"head":{"commit":"0d2dc3eeeb507dddae6882a6f56cc81b603b5985","tree":"d66eb9edb37f1097a3d5cd88c1b356251772d5cb"}}}}');
INSERT INTO "events" VALUES(16,1,13,'2026-11-18T15:32:36.01120316Z',1,'loop.attempt_started','1',NULL,'{"attempt":2,"launch":{"agent":"scripted","model":null,"role":"review","reviewer":"general","phase":"review","cycle":1,"hold":"nobody"}}');
INSERT INTO "events" VALUES(17,1,14,'2026-11-18T15:32:36.031126981Z',1,'loop.used','1',NULL,'{"attempt":2,"usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":0}}');
INSERT INTO "events" VALUES(18,1,15,'2026-11-18T15:32:36.031126981Z',1,'loop.review_arrived','1',NULL,'{"attempt":2,"review":{"reviewer":"general","kind":"general","verdict":"changes_requested","confidence":"unstated","findings":[{"id":"f-bcfa87c68b","sources":["general"],"kind":"changes","severity":"critical","file":"work1.txt","line":1,"description":"too short","requirement":null,"suggestion":null}],"minor":[],"checked":[],"summary":"- work1.txt:1 too short","follow_up_prompt":null,"interpreted_intent":null,"intent_satisfied":"unstated","usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":0},"judged":{"commit":"0d2dc3eeeb507dddae6882a6f56cc81b603b5985","diff_digest":"9a9400736fcdfe89f5082bd4d0431538f58697ee77b340447223c192b08fc686"},"raw":".signoff/reviews/20261118-task-1-review-1.general.txt"}}');
INSERT INTO "events" VALUES(19,1,16,'2026-11-18T15:32:36.031126981Z',1,'loop.attempt_started','1',NULL,'{"attempt":3,"launch":{"agent":"scripted","model":null,"role":"fix","reviewer":null,"phase":"review","cycle":1,"hold":"nobody"}}');
INSERT INTO "events" VALUES(20,1,17,'2026-11-18T15:32:36.076193803Z',1,'loop.used','1',NULL,'{"attempt":3,"usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":5}}');
INSERT INTO "events" VALUES(21,1,18,'2026-11-18T15:32:36.076193803Z',1,'loop.work_ended','1',NULL,'{"attempt":3,"report":{"complete":{"head":{"commit":"066fd61ec6a2a2974c8c7a502b0b89ff0a7416fd","tree":"f59de3e35b395ce581ee7bad0740c53808df07e2"}}}}');
INSERT INTO "events" VALUES(22,1,19,'2026-11-18T15:32:36.076193803Z',1,'loop.attempt_started','1',NULL,'{"attempt":4,"launch":{"agent":"scripted","model":null,"role":"review","reviewer":"general","phase":"review","cycle":2,"hold":"nobody"}}');
INSERT INTO "events" VALUES(23,1,20,'2026-11-18T15:32:36.098230938Z',1,'loop.used','1',NULL,'{"attempt":4,"usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":3}}');
INSERT INTO "events" VALUES(24,1,21,'2026-11-18T15:32:36.098230938Z',1,'loop.review_arrived','1',NULL,'{"attempt":4,"review":{"reviewer":"general","kind":"general","verdict":"approved","confidence":"unstated","findings":[],"minor":[],"checked":[],"summary":"Fine.","follow_up_prompt":null,"interpreted_intent":null,"intent_satisfied":"unstated","usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":3},"judged":{"commit":"066fd61ec6a2a2974c8c7a502b0b89ff0a7416fd","diff_digest":"49b1c46e8eba9a67a1b51882dfd3ce3cb0e43c637e1a2713f62a7d1d676011e8"},"raw":".signoff/reviews/20261118-task-1-review-2.general.txt"}}');
INSERT INTO "events" VALUES(25,1,22,'2026-11-18T15:32:36.098230938Z',1,'run.loop_moved',NULL,NULL,'{"loop_id":"1","standing":{"ended":{"approved":{"commit":"066fd61ec6a2a2974c8c7a502b0b89ff0a7416fd"}}}}');
INSERT INTO "events" VALUES(26,1,23,'2026-11-18T15:32:36.100059977Z',1,'run.task_picked',NULL,NULL,'{"loop_id":"2"}');
INSERT INTO "events" VALUES(27,1,24,'2026-11-18T15:32:36.100059977Z',1,'loop.added','2',NULL,'{"task":2,"title":"Never good","branch":"signoff/task-2-never-good"}');
INSERT INTO "events" VALUES(28,1,25,'2026-11-18T15:32:36.100059977Z',1,'loop.governed','2',NULL,'{"policy":{"workflow":{"name":"task","description":"one task: implement, review, improve until approved","completion":"exit","landing":"none","arrangement":"queue","checkpoint_interval":null,"max_attempts":50,"max_passes":10,"max_recoveries":5,"max_conflicts":3,"max_rate_limits":20,"bounds_restarts":true,"attempts_exhausted_as":"failed","modes":[],"reviewers":{"general":{"kind":"general","contract":"markdown"}},"before":[],"phases":[{"name":"implement","kind":"agent","role":"implement","timeout":"1h","researchers":0,"per_item":false,"once":false,"mode":null},{"name":"review","kind":"gate","enabled":true,"reviewers":["general"],"fail_on":"LOW","on_failure":"mini-loop","max_cycles":2,"on_exhausted":"stop","exhausted_as":"attention","on_unclear":["retry","request-changes"],"on_reviewer_failure":"fail","on_fixer_failure":"fail","on_implementer_failure":"fail","on_discussion":"ask","author_output":false,"parallel_fixes":false,"require_nonce":null,"review_timeout":"10m","fix_timeout":"30m","rereview":"full","depth":"standard","max_same_finding":null,"max_noop_fixes":null,"restart_to":0,"fixer":"fix","per_item":false,"once":false,"mode":null}],"after":[]},"no_ask":false,"fix_needs_review":true}}');
INSERT INTO "events" VALUES(29,1,26,'2026-11-18T15:32:36.113617084Z',1,'loop.placed','2',NULL,'{"base":"a04babbf70922fa3cb88df1cee1dabf3b514856f","worktree":"@WORK@/.signoff/worktrees/task-2"}');
INSERT INTO "events" VALUES(30,1,27,'2026-11-18T15:32:36.113617084Z',1,'loop.base_set','2',NULL,'{"tree":"facdb051ea0f23ba801529a2debb0384367c3482"}');
INSERT INTO "events" VALUES(31,1,28,'2026-11-18T15:32:36.113617084Z',1,'loop.started','2',NULL,'{"head":{"commit":"a04babbf70922fa3cb88df1cee1dabf3b514856f","tree":"facdb051ea0f23ba801529a2debb0384367c3482"}}');
INSERT INTO "events" VALUES(32,1,29,'2026-11-18T15:32:36.113617084Z',1,'loop.attempt_started','2',NULL,'{"attempt":1,"launch":{"agent":"scripted","model":null,"role":"implement","reviewer":null,"phase":"implement","cycle":0,"hold":"nobody"}}');
INSERT INTO "events" VALUES(33,1,30,'2026-11-18T15:32:36.113617084Z',1,'run.loop_moved',NULL,NULL,'{"loop_id":"2","standing":"active"}');
INSERT INTO "events" VALUES(34,1,31,'2026-11-18T15:32:36.145225086Z',1,'loop.used','2',NULL,'{"attempt":1,"usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":3}}');
INSERT INTO "events" VALUES(35,1,32,'2026-11-18T15:32:36.145225086Z',1,'loop.work_ended','2',NULL,'{"attempt":1,"report":{"complete":{"head":{"commit":"369ae5d94286ac98d32a11e09148f33149396b92","tree":"921bdec34062990c390430ab55b0c1022a37dcc8"}}}}');
INSERT INTO "events" VALUES(36,1,33,'2026-11-18T15:32:36.145225086Z',1,'loop.attempt_started','2',NULL,'{"attempt":2,"launch":{"agent":"scripted","model":null,"role":"review","reviewer":"general","phase":"review","cycle":1,"hold":"nobody"}}');
INSERT INTO "events" VALUES(37,1,34,'2026-11-18T15:32:36.165138672Z',1,'loop.used','2',NULL,'{"attempt":2,"usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":5}}');
INSERT INTO "events" VALUES(38,1,35,'2026-11-18T15:32:36.165138672Z',1,'loop.review_arrived','2',NULL,'{"attempt":2,"review":{"reviewer":"general","kind":"general","verdict":"changes_requested","confidence":"unstated","findings":[{"id":"f-6b79ae9172","sources":["general"],"kind":"changes","severity":"critical","file":"work2.txt","line":1,"description":"too short","requirement":null,"suggestion":null}],"minor":[],"checked":[],"summary":"- work2.txt:1 too short","follow_up_prompt":null,"interpreted_intent":null,"intent_satisfied":"unstated","usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":5},"judged":{"commit":"369ae5d94286ac98d32a11e09148f33149396b92","diff_digest":"57bd0ebf02c4066b58a690e968be70c471c20df9e4674827b8ed48874e8c9147"},"raw":".signoff/reviews/20261118-task-2-review-1.general.txt"}}');
INSERT INTO "events" VALUES(39,1,36,'2026-11-18T15:32:36.165138672Z',1,'loop.attempt_started','2',NULL,'{"attempt":3,"launch":{"agent":"scripted","model":null,"role":"fix","reviewer":null,"phase":"review","cycle":1,"hold":"nobody"}}');
INSERT INTO "events" VALUES(40,1,37,'2026-11-18T15:32:36.197482167Z',1,'loop.used','2',NULL,'{"attempt":3,"usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":5}}');
INSERT INTO "events" VALUES(41,1,38,'2026-11-18T15:32:36.197482167Z',1,'loop.work_ended','2',NULL,'{"attempt":3,"report":{"complete":{"head":{"commit":"4bad888bbb1dcb49341ee98c83ae5baf705d40ed","tree":"20bc0d543222e083d59e1d1220b82ee1ba78c6ab"}}}}');
INSERT INTO "events" VALUES(42,1,39,'2026-11-18T15:32:36.197482167Z',1,'loop.attempt_started','2',NULL,'{"attempt":4,"launch":{"agent":"scripted","model":null,"role":"review","reviewer":"general","phase":"review","cycle":2,"hold":"nobody"}}');
INSERT INTO "events" VALUES(43,1,40,'2026-11-18T15:32:36.213869881Z',1,'loop.used','2',NULL,'{"attempt":4,"usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":1}}');
INSERT INTO "events" VALUES(44,1,41,'2026-11-18T15:32:36.213869881Z',1,'loop.review_arrived','2',NULL,'{"attempt":4,"review":{"reviewer":"general","kind":"general","verdict":"changes_requested","confidence":"unstated","findings":[{"id":"f-6b79ae9172","sources":["general"],"kind":"changes","severity":"critical","file":"work2.txt","line":1,"description":"too short","requirement":null,"suggestion":null}],"minor":[],"checked":[],"summary":"- work2.txt:1 too short","follow_up_prompt":null,"interpreted_intent":null,"intent_satisfied":"unstated","usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":1},"judged":{"commit":"4bad888bbb1dcb49341ee98c83ae5baf705d40ed","diff_digest":"3c3d24580b693ff7fdb9a482d72f00fc6267db9956b5becf780b82f1b974db4b"},"raw":".signoff/reviews/20261118-task-2-review-2.general.txt"}}');
INSERT INTO "events" VALUES(45,1,42,'2026-11-18T15:32:36.213869881Z',1,'run.loop_moved',NULL,NULL,'{"loop_id":"2","standing":{"ended":"exhausted"}}');
INSERT INTO "events" VALUES(46,1,43,'2026-11-18T15:32:36.219338302Z',1,'run.task_picked',NULL,NULL,'{"loop_id":"3"}');
INSERT INTO "events" VALUES(47,1,44,'2026-11-18T15:32:36.219338302Z',1,'loop.added','3',NULL,'{"task":3,"title":"Talk about it","branch":"signoff/task-3-talk-about-it"}');
INSERT INTO "events" VALUES(48,1,45,'2026-11-18T15:32:36.219338302Z',1,'loop.governed','3',NULL,'{"policy":{"workflow":{"name":"task","description":"one task: implement, review, improve until approved","completion":"exit","landing":"none","arrangement":"queue","checkpoint_interval":null,"max_attempts":50,"max_passes":10,"max_recoveries":5,"max_conflicts":3,"max_rate_limits":20,"bounds_restarts":true,"attempts_exhausted_as":"failed","modes":[],"reviewers":{"general":{"kind":"general","contract":"markdown"}},"before":[],"phases":[{"name":"implement","kind":"agent","role":"implement","timeout":"1h","researchers":0,"per_item":false,"once":false,"mode":null},{"name":"review","kind":"gate","enabled":true,"reviewers":["general"],"fail_on":"LOW","on_failure":"mini-loop","max_cycles":3,"on_exhausted":"stop","exhausted_as":"attention","on_unclear":["retry","request-changes"],"on_reviewer_failure":"fail","on_fixer_failure":"fail","on_implementer_failure":"fail","on_discussion":"ask","author_output":false,"parallel_fixes":false,"require_nonce":null,"review_timeout":"10m","fix_timeout":"30m","rereview":"full","depth":"standard","max_same_finding":null,"max_noop_fixes":null,"restart_to":0,"fixer":"fix","per_item":false,"once":false,"mode":null}],"after":[]},"no_ask":false,"fix_needs_review":true}}');
INSERT INTO "events" VALUES(49,1,46,'2026-11-18T15:32:36.230767112Z',1,'loop.placed','3',NULL,'{"base":"a04babbf70922fa3cb88df1cee1dabf3b514856f","worktree":"@WORK@/.signoff/worktrees/task-3"}');
INSERT INTO "events" VALUES(50,1,47,'2026-11-18T15:32:36.230767112Z',1,'loop.base_set','3',NULL,'{"tree":"facdb051ea0f23ba801529a2debb0384367c3482"}');
INSERT INTO "events" VALUES(51,1,48,'2026-11-18T15:32:36.230767112Z',1,'loop.started','3',NULL,'{"head":{"commit":"a04babbf70922fa3cb88df1cee1dabf3b514856f","tree":"facdb051ea0f23ba801529a2debb0384367c3482"}}');
INSERT INTO "events" VALUES(52,1,49,'2026-11-18T15:32:36.230767112Z',1,'loop.attempt_started','3',NULL,'{"attempt":1,"launch":{"agent":"scripted","model":null,"role":"implement","reviewer":null,"phase":"implement","cycle":0,"hold":"nobody"}}');
INSERT INTO "events" VALUES(53,1,50,'2026-11-18T15:32:36.230767112Z',1,'run.loop_moved',NULL,NULL,'{"loop_id":"3","standing":"active"}');
INSERT INTO "events" VALUES(54,1,51,'2026-11-18T15:32:36.265251442Z',1,'loop.used','3',NULL,'{"attempt":1,"usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":3}}');
INSERT INTO "events" VALUES(55,1,52,'2026-11-18T15:32:36.265251442Z',1,'loop.work_ended','3',NULL,'{"attempt":1,"report":{"complete":{"head":{"commit":"6bd2c5d48b196dc81f839150c7ce81d06d6ea314","tree":"db2d0546948b2ae873ec7513b48004e5b6ac5780"}}}}');
INSERT INTO "events" VALUES(56,1,53,'2026-11-18T15:32:36.265251442Z',1,'loop.attempt_started','3',NULL,'{"attempt":2,"launch":{"agent":"scripted","model":null,"role":"review","reviewer":"general","phase":"review","cycle":1,"hold":"nobody"}}');
INSERT INTO "events" VALUES(57,1,54,'2026-11-18T15:32:36.290491667Z',1,'loop.used','3',NULL,'{"attempt":2,"usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":4}}');
INSERT INTO "events" VALUES(58,1,55,'2026-11-18T15:32:36.290491667Z',1,'loop.review_arrived','3',NULL,'{"attempt":2,"review":{"reviewer":"general","kind":"general","verdict":"needs_discussion","confidence":"unstated","findings":[{"id":"f-567e9e6ca8","sources":["general"],"kind":"changes","severity":"critical","file":"work3.txt","line":1,"description":"None or ValueError?","requirement":null,"suggestion":null}],"minor":[],"checked":[],"summary":"- work3.txt:1 None or ValueError?","follow_up_prompt":null,"interpreted_intent":null,"intent_satisfied":"unstated","usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":4},"judged":{"commit":"6bd2c5d48b196dc81f839150c7ce81d06d6ea314","diff_digest":"f46883f52b3bbdfb257db638276cb0cde0ad5c4878b41698647b059b8c7fa78d"},"raw":".signoff/reviews/20261118-task-3-review-1.general.txt"}}');
INSERT INTO "events" VALUES(59,1,56,'2026-11-18T15:32:36.290491667Z',1,'run.loop_moved',NULL,NULL,'{"loop_id":"3","standing":"waiting"}');
INSERT INTO "events" VALUES(60,1,57,'2026-11-18T15:32:36.292120888Z',1,'run.nothing_to_pick',NULL,NULL,'null');
INSERT INTO "events" VALUES(61,1,58,'2026-11-18T15:32:36.366753059Z',1,'loop.landing_granted','1',NULL,'null');
INSERT INTO "events" VALUES(62,1,59,'2026-11-18T15:32:36.366753059Z',1,'run.loop_moved',NULL,NULL,'{"loop_id":"1","standing":"landing"}');
INSERT INTO "events" VALUES(63,1,60,'2026-11-18T15:32:36.373330073Z',1,'loop.attempt_started','1',NULL,'{"attempt":5,"launch":{"agent":"checks","model":null,"role":"land","reviewer":null,"phase":"land","cycle":2}}');
INSERT INTO "events" VALUES(64,1,61,'2026-11-18T15:32:36.440364106Z',1,'loop.used','1',NULL,'{"attempt":5,"usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":0}}');
INSERT INTO "events" VALUES(65,1,62,'2026-11-18T15:32:36.440364106Z',1,'loop.landing_ended','1',NULL,'{"attempt":5,"report":{"landed":{"commit":"293c8a1d2764594674413c9614b338f12a166aab"}}}');
INSERT INTO "events" VALUES(66,1,63,'2026-11-18T15:32:36.440364106Z',1,'run.loop_moved',NULL,NULL,'{"loop_id":"1","standing":{"ended":{"approved":{"commit":"066fd61ec6a2a2974c8c7a502b0b89ff0a7416fd"}}}}');
INSERT INTO "events" VALUES(67,1,64,'2026-11-18T15:32:36.441659278Z',1,'run.nothing_to_pick',NULL,NULL,'null');
INSERT INTO "events" VALUES(68,0,4,'2026-11-18T15:32:36.478379018Z',1,'task.added',NULL,4,'{"spec":{"title":"Killed at work","description":"Killed at work","type":"implement","auto_review":true,"max_review_cycles":null,"effort":null,"model":null,"depends_on":[],"plan":null,"prompt":null,"continues":null,"first_review":null,"answers":null,"guidance":null,"origin":null},"auto_review":true,"max_review_cycles":3}');
INSERT INTO "events" VALUES(69,2,1,'2026-11-18T15:32:36.533124152Z',1,'run.opened',NULL,NULL,'{"policy":{"arrangement":"slots","landing":"none","jobs":1,"checkpoint_interval":null,"keep_going":true,"supply":"queue","stop_marker":false,"before":false,"after":false,"onto_default":false},"workflow":{"workflow":{"name":"task","description":"one task: implement, review, improve until approved","completion":"exit","landing":"none","arrangement":"queue","checkpoint_interval":null,"max_attempts":50,"max_passes":10,"max_recoveries":5,"max_conflicts":3,"max_rate_limits":20,"bounds_restarts":true,"attempts_exhausted_as":"failed","modes":[],"reviewers":{"general":{"kind":"general","contract":"markdown"}},"before":[],"phases":[{"name":"implement","kind":"agent","role":"implement","timeout":"1h","researchers":0,"per_item":false,"once":false,"mode":null},{"name":"review","kind":"gate","enabled":false,"reviewers":["general"],"fail_on":"LOW","on_failure":"mini-loop","max_cycles":3,"on_exhausted":"stop","exhausted_as":"attention","on_unclear":["retry","request-changes"],"on_reviewer_failure":"fail","on_fixer_failure":"fail","on_implementer_failure":"fail","on_discussion":"ask","author_output":false,"parallel_fixes":false,"require_nonce":null,"review_timeout":"10m","fix_timeout":"30m","rereview":"full","depth":"standard","max_same_finding":null,"max_noop_fixes":null,"restart_to":0,"fixer":"fix","per_item":false,"once":false,"mode":null}],"after":[]},"no_ask":false,"fix_needs_review":true}}');
INSERT INTO "events" VALUES(70,2,2,'2026-11-18T15:32:36.533124152Z',1,'run.started',NULL,NULL,'null');
INSERT INTO "events" VALUES(71,2,3,'2026-11-18T15:32:36.533124152Z',1,'run.task_picked',NULL,NULL,'{"loop_id":"4"}');
INSERT INTO "events" VALUES(72,2,4,'2026-11-18T15:32:36.533124152Z',1,'loop.added','4',NULL,'{"task":4,"title":"Killed at work","branch":"signoff/task-4-killed-at-work"}');
INSERT INTO "events" VALUES(73,2,5,'2026-11-18T15:32:36.533124152Z',1,'loop.governed','4',NULL,'{"policy":{"workflow":{"name":"task","description":"one task: implement, review, improve until approved","completion":"exit","landing":"none","arrangement":"queue","checkpoint_interval":null,"max_attempts":50,"max_passes":10,"max_recoveries":5,"max_conflicts":3,"max_rate_limits":20,"bounds_restarts":true,"attempts_exhausted_as":"failed","modes":[],"reviewers":{"general":{"kind":"general","contract":"markdown"}},"before":[],"phases":[{"name":"implement","kind":"agent","role":"implement","timeout":"1h","researchers":0,"per_item":false,"once":false,"mode":null},{"name":"review","kind":"gate","enabled":true,"reviewers":["general"],"fail_on":"LOW","on_failure":"mini-loop","max_cycles":3,"on_exhausted":"stop","exhausted_as":"attention","on_unclear":["retry","request-changes"],"on_reviewer_failure":"fail","on_fixer_failure":"fail","on_implementer_failure":"fail","on_discussion":"ask","author_output":false,"parallel_fixes":false,"require_nonce":null,"review_timeout":"10m","fix_timeout":"30m","rereview":"full","depth":"standard","max_same_finding":null,"max_noop_fixes":null,"restart_to":0,"fixer":"fix","per_item":false,"once":false,"mode":null}],"after":[]},"no_ask":false,"fix_needs_review":true}}');
INSERT INTO "events" VALUES(74,2,6,'2026-11-18T15:32:36.548527944Z',1,'loop.placed','4',NULL,'{"base":"293c8a1d2764594674413c9614b338f12a166aab","worktree":"@WORK@/.signoff/worktrees/task-4"}');
INSERT INTO "events" VALUES(75,2,7,'2026-11-18T15:32:36.548527944Z',1,'loop.base_set','4',NULL,'{"tree":"f59de3e35b395ce581ee7bad0740c53808df07e2"}');
INSERT INTO "events" VALUES(76,2,8,'2026-11-18T15:32:36.548527944Z',1,'loop.started','4',NULL,'{"head":{"commit":"293c8a1d2764594674413c9614b338f12a166aab","tree":"f59de3e35b395ce581ee7bad0740c53808df07e2"}}');
INSERT INTO "events" VALUES(77,2,9,'2026-11-18T15:32:36.548527944Z',1,'loop.attempt_started','4',NULL,'{"attempt":1,"launch":{"agent":"scripted","model":null,"role":"implement","reviewer":null,"phase":"implement","cycle":0,"hold":"nobody"}}');
INSERT INTO "events" VALUES(78,2,10,'2026-11-18T15:32:36.548527944Z',1,'run.loop_moved',NULL,NULL,'{"loop_id":"4","standing":"active"}');
INSERT INTO "events" VALUES(79,0,5,'2026-11-18T15:32:37.628953546Z',1,'task.added',NULL,5,'{"spec":{"title":"Not begun","description":"Not begun","type":"implement","auto_review":true,"max_review_cycles":null,"effort":null,"model":null,"depends_on":[],"plan":null,"prompt":null,"continues":null,"first_review":null,"answers":null,"guidance":null,"origin":null},"auto_review":true,"max_review_cycles":3}');
CREATE TABLE findings (
    id          TEXT    NOT NULL,
    run_id      INTEGER NOT NULL,
    loop_id     TEXT    NOT NULL,
    task_id     INTEGER,
    state       TEXT    NOT NULL,
    severity    TEXT    NOT NULL,
    type        TEXT    NOT NULL,
    file        TEXT,
    line        INTEGER,
    description TEXT    NOT NULL,
    suggestion  TEXT,
    PRIMARY KEY (id, run_id, loop_id)
) STRICT, WITHOUT ROWID;
INSERT INTO "findings" VALUES('f-567e9e6ca8',1,'3',3,'open','critical','changes','work3.txt',1,'None or ValueError?',NULL);
INSERT INTO "findings" VALUES('f-6b79ae9172',1,'2',2,'open','critical','changes','work2.txt',1,'too short',NULL);
INSERT INTO "findings" VALUES('f-bcfa87c68b',1,'1',1,'fixed','critical','changes','work1.txt',1,'too short',NULL);
CREATE TABLE leases (
    run_id    INTEGER PRIMARY KEY,
    fence     INTEGER NOT NULL,
    opened_at TEXT    NOT NULL
) STRICT;
INSERT INTO "leases" VALUES(1,4,'2026-11-18T15:32:35.965666647Z');
INSERT INTO "leases" VALUES(2,1,'2026-11-18T15:32:36.522121383Z');
CREATE TABLE loop_reviews (
    id                 TEXT    PRIMARY KEY,
    run_id             INTEGER NOT NULL REFERENCES runs (id),
    loop_id            TEXT    NOT NULL,
    task_id            INTEGER,
    passed             INTEGER NOT NULL,
    interpreted_intent TEXT,
    intent_satisfied   INTEGER,
    reviewed_at        TEXT    NOT NULL,
    cost_usd           REAL    DEFAULT 0,
    reviewer           TEXT    NOT NULL,
    verdict            TEXT    NOT NULL,
    pass               INTEGER NOT NULL,
    phase              TEXT    NOT NULL,
    cycle              INTEGER NOT NULL,
    commit_id          TEXT,
    summary            TEXT    NOT NULL, cost_is_estimated INTEGER NOT NULL DEFAULT 0,
    FOREIGN KEY (run_id, loop_id) REFERENCES loops (run_id, id)
) STRICT, WITHOUT ROWID;
INSERT INTO "loop_reviews" VALUES('1-15',1,'1',1,0,NULL,NULL,'2026-11-18T15:32:36.031126981Z',0.0,'general','changes_requested',1,'review',1,'0d2dc3eeeb507dddae6882a6f56cc81b603b5985','- work1.txt:1 too short',0);
INSERT INTO "loop_reviews" VALUES('1-21',1,'1',1,1,NULL,NULL,'2026-11-18T15:32:36.098230938Z',0.0,'general','approved',1,'review',2,'066fd61ec6a2a2974c8c7a502b0b89ff0a7416fd','Fine.',0);
INSERT INTO "loop_reviews" VALUES('1-35',1,'2',2,0,NULL,NULL,'2026-11-18T15:32:36.165138672Z',0.0,'general','changes_requested',1,'review',1,'369ae5d94286ac98d32a11e09148f33149396b92','- work2.txt:1 too short',0);
INSERT INTO "loop_reviews" VALUES('1-41',1,'2',2,0,NULL,NULL,'2026-11-18T15:32:36.213869881Z',0.0,'general','changes_requested',1,'review',2,'4bad888bbb1dcb49341ee98c83ae5baf705d40ed','- work2.txt:1 too short',0);
INSERT INTO "loop_reviews" VALUES('1-55',1,'3',3,0,NULL,NULL,'2026-11-18T15:32:36.290491667Z',0.0,'general','needs_discussion',1,'review',1,'6bd2c5d48b196dc81f839150c7ce81d06d6ea314','- work3.txt:1 None or ValueError?',0);
CREATE TABLE loops (
    id                        TEXT    NOT NULL,
    run_id                    INTEGER NOT NULL REFERENCES runs (id),
    task_id                   INTEGER,
    status                    TEXT    NOT NULL,
    iteration                 INTEGER NOT NULL,
    last_checkpoint_review_at INTEGER NOT NULL,
    review_status             TEXT    NOT NULL,
    last_review_id            TEXT,
    revision_attempts         INTEGER NOT NULL,
    worktree_path             TEXT,
    title                     TEXT    NOT NULL,
    branch                    TEXT,
    phase                     TEXT    NOT NULL,
    pass                      INTEGER NOT NULL,
    cycle                     INTEGER NOT NULL,
    head_commit               TEXT,
    outcome                   TEXT,
    reason                    TEXT,
    cost_usd                  REAL    NOT NULL,
    started_at                TEXT,
    ended_at                  TEXT, cost_is_estimated INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, id)
) STRICT, WITHOUT ROWID;
INSERT INTO "loops" VALUES('1',1,1,'completed',2,0,'passed','1-21',1,'@WORK@/.signoff/worktrees/task-1','Approve later','signoff/task-1-approve-later','',1,2,'066fd61ec6a2a2974c8c7a502b0b89ff0a7416fd','approved',NULL,0.0,'2026-11-18T15:32:35.98440796Z','2026-11-18T15:32:36.440364106Z',0);
INSERT INTO "loops" VALUES('2',1,2,'completed',2,0,'failed','1-41',1,'@WORK@/.signoff/worktrees/task-2','Never good','signoff/task-2-never-good','review',1,2,'4bad888bbb1dcb49341ee98c83ae5baf705d40ed','exhausted','cycles_exhausted',0.0,'2026-11-18T15:32:36.113617084Z','2026-11-18T15:32:36.213869881Z',0);
INSERT INTO "loops" VALUES('3',1,3,'running',1,0,'failed','1-55',0,'@WORK@/.signoff/worktrees/task-3','Talk about it','signoff/task-3-talk-about-it','review',1,1,'6bd2c5d48b196dc81f839150c7ce81d06d6ea314',NULL,NULL,0.0,'2026-11-18T15:32:36.230767112Z',NULL,0);
INSERT INTO "loops" VALUES('4',2,4,'running',1,0,'pending',NULL,0,'@WORK@/.signoff/worktrees/task-4','Killed at work','signoff/task-4-killed-at-work','implement',1,0,'293c8a1d2764594674413c9614b338f12a166aab',NULL,NULL,0.0,'2026-11-18T15:32:36.548527944Z',NULL,0);
CREATE TABLE questions (
    id          INTEGER PRIMARY KEY,
    run_id      INTEGER NOT NULL,
    loop_id     TEXT    NOT NULL,
    number      INTEGER NOT NULL,
    task_id     INTEGER,
    text        TEXT    NOT NULL,
    choices     TEXT    NOT NULL,
    asked_at    TEXT    NOT NULL,
    closed_at   TEXT,
    answer      TEXT,
    answered_by TEXT,
    UNIQUE (run_id, loop_id, number)
) STRICT;
INSERT INTO "questions" VALUES(1,1,'3',1,3,'general wants to discuss the work. Have it fixed, proceed, or stop?','["fix","proceed","stop","restart"]','2026-11-18T15:32:36.290491667Z',NULL,NULL,NULL);
CREATE TABLE requests (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id  INTEGER NOT NULL,
    loop_id TEXT    NOT NULL,
    command TEXT    NOT NULL,
    settled INTEGER NOT NULL DEFAULT 0,
    refusal TEXT
) STRICT;
CREATE TABLE review_issues (
    id             TEXT    PRIMARY KEY,
    run_id         INTEGER NOT NULL REFERENCES runs (id),
    loop_id        TEXT,
    loop_review_id TEXT    REFERENCES loop_reviews (id),
    task_id        INTEGER,
    file           TEXT,
    line           INTEGER,
    type           TEXT    NOT NULL,
    severity       TEXT    NOT NULL,
    description    TEXT    NOT NULL,
    suggestion     TEXT,
    state          TEXT,
    finding_id     TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO "review_issues" VALUES('1-15-1',1,'1','1-15',1,'work1.txt',1,'changes','critical','too short',NULL,'fixed','f-bcfa87c68b');
INSERT INTO "review_issues" VALUES('1-35-1',1,'2','1-35',2,'work2.txt',1,'changes','critical','too short',NULL,'open','f-6b79ae9172');
INSERT INTO "review_issues" VALUES('1-41-1',1,'2','1-41',2,'work2.txt',1,'changes','critical','too short',NULL,'open','f-6b79ae9172');
INSERT INTO "review_issues" VALUES('1-55-1',1,'3','1-55',3,'work3.txt',1,'changes','critical','None or ValueError?',NULL,'open','f-567e9e6ca8');
CREATE TABLE runs (
    id            INTEGER PRIMARY KEY,
    preset        TEXT    NOT NULL,
    status        TEXT    NOT NULL,
    open          INTEGER NOT NULL,
    started_at    TEXT,
    ended_at      TEXT,
    cost_usd      REAL    NOT NULL,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL
, stage TEXT NOT NULL DEFAULT 'done', group_number INTEGER, group_count INTEGER, branch TEXT, specification TEXT, cost_is_estimated INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "runs" VALUES(1,'task','running',1,'2026-11-18T15:32:35.972055421Z',NULL,0.0,0,0,'working',NULL,NULL,NULL,NULL,0);
INSERT INTO "runs" VALUES(2,'task','running',1,'2026-11-18T15:32:36.533124152Z',NULL,0.0,0,0,'working',NULL,NULL,NULL,NULL,0);
CREATE TABLE tasks (
    id                INTEGER PRIMARY KEY,
    run_id            INTEGER,
    loop_id           TEXT,
    title             TEXT    NOT NULL,
    type              TEXT    NOT NULL,
    status            TEXT    NOT NULL,
    outcome           TEXT,
    final_verdict     TEXT,
    reason            TEXT,
    auto_review       INTEGER NOT NULL,
    review_cycle      INTEGER NOT NULL,
    max_review_cycles INTEGER,
    branch            TEXT,
    base              TEXT,
    worktree          TEXT,
    phase             TEXT,
    iteration         INTEGER NOT NULL,
    open_findings     INTEGER NOT NULL,
    cost_usd          REAL    NOT NULL,
    input_tokens      INTEGER NOT NULL,
    output_tokens     INTEGER NOT NULL,
    depends_on        TEXT    NOT NULL,
    continues         INTEGER,
    added_at          TEXT    NOT NULL,
    started_at        TEXT,
    ended_at          TEXT
, approved_commit TEXT, tracker TEXT, tracker_id TEXT, cost_is_estimated INTEGER NOT NULL DEFAULT 0, state TEXT NOT NULL DEFAULT 'queued', landed_commit TEXT, run_commit TEXT) STRICT;
INSERT INTO "tasks" VALUES(1,1,'1','Approve later','implement','completed','approved','APPROVED',NULL,1,2,3,'signoff/task-1-approve-later','a04babbf70922fa3cb88df1cee1dabf3b514856f','@WORK@/.signoff/worktrees/task-1',NULL,2,0,0.0,0,0,'[]',NULL,'2026-11-18T15:32:35.874464235Z','2026-11-18T15:32:35.98440796Z','2026-11-18T15:32:36.440364106Z','066fd61ec6a2a2974c8c7a502b0b89ff0a7416fd',NULL,NULL,0,'approved','293c8a1d2764594674413c9614b338f12a166aab',NULL);
INSERT INTO "tasks" VALUES(2,1,'2','Never good','implement','completed','exhausted','MAX_CYCLES_REACHED','cycles_exhausted',1,2,2,'signoff/task-2-never-good','a04babbf70922fa3cb88df1cee1dabf3b514856f','@WORK@/.signoff/worktrees/task-2','review',2,1,0.0,0,0,'[]',NULL,'2026-11-18T15:32:35.900609836Z','2026-11-18T15:32:36.113617084Z','2026-11-18T15:32:36.213869881Z',NULL,NULL,NULL,0,'needs_you',NULL,NULL);
INSERT INTO "tasks" VALUES(3,1,'3','Talk about it','implement','waiting',NULL,NULL,NULL,1,1,3,'signoff/task-3-talk-about-it','a04babbf70922fa3cb88df1cee1dabf3b514856f','@WORK@/.signoff/worktrees/task-3','review',1,1,0.0,0,0,'[]',NULL,'2026-11-18T15:32:35.932462304Z','2026-11-18T15:32:36.230767112Z',NULL,NULL,NULL,NULL,0,'needs_you',NULL,NULL);
INSERT INTO "tasks" VALUES(4,2,'4','Killed at work','implement','in_progress',NULL,NULL,NULL,1,0,3,'signoff/task-4-killed-at-work','293c8a1d2764594674413c9614b338f12a166aab','@WORK@/.signoff/worktrees/task-4','implement',1,0,0.0,0,0,'[]',NULL,'2026-11-18T15:32:36.478379018Z','2026-11-18T15:32:36.548527944Z',NULL,NULL,NULL,NULL,0,'working',NULL,NULL);
INSERT INTO "tasks" VALUES(5,NULL,NULL,'Not begun','implement','pending',NULL,NULL,NULL,1,0,3,NULL,NULL,NULL,NULL,0,0,0.0,0,0,'[]',NULL,'2026-11-18T15:32:37.628953546Z',NULL,NULL,NULL,NULL,NULL,0,'queued',NULL,NULL);
CREATE INDEX events_by_task ON events (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX requests_open ON requests (run_id) WHERE settled = 0;
CREATE INDEX runs_open ON runs (id) WHERE open;
CREATE INDEX tasks_queued ON tasks (id) WHERE run_id IS NULL AND status = 'pending';
CREATE INDEX loop_reviews_by_loop ON loop_reviews (run_id, loop_id);
CREATE INDEX review_issues_by_review ON review_issues (loop_review_id);
CREATE INDEX questions_open ON questions (id) WHERE closed_at IS NULL;
CREATE INDEX tasks_by_tracker ON tasks (tracker, tracker_id) WHERE tracker IS NOT NULL;
CREATE INDEX events_by_loop ON events (run_id, loop_id, seq);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',79);
COMMIT;
PRAGMA user_version=7;
PRAGMA application_id=0;
