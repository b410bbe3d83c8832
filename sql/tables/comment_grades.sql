-- What people make of a comment's quality, from 1 to 5 (commenting, appendix A.1; AAC-08).
-- Key: project, source, thread_id, comment_id. Partitioned by project.
create table comment_grades (
    project varchar not null, -- Labelling project: of references, or of what commenters made
    source varchar not null, -- Site or corpus the row comes from
    thread_id varchar not null, -- threads.thread_id
    comment_id varchar not null, -- comments.comment_id, or generated_comments.generated_id
    grade double not null, -- Mean of the grades
    grades double[] not null, -- Grades in the order of their raters
    raters varchar[] not null, -- Pseudonyms of the raters, in order
    tool varchar not null -- What they came through: label_studio, file, simulated, …
);
